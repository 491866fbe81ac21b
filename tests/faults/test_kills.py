"""Drivers, compactions and replicas are killed at random: no row is lost, and no write is stuck."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.support.faults.kills import Battle, Figures, fought, replicas
from tests.support.laws import times


def assert_holds(figures: Figures) -> None:
    assert figures.lost == []
    assert figures.doubled == []
    assert figures.foreign == []
    assert figures.stuck == []
    assert figures.wrong == []


def test_whatever_is_killed_each_acknowledged_row_is_seen_once_and_the_next_write_succeeds(
    postgresql_server: str, tmp_path: Path
) -> None:
    figures = fought(postgresql_server, tmp_path, times(300, by_day=12), each=6, seed=1)

    assert_holds(figures)
    assert figures.kills["writer"] > 0
    assert figures.kills["replica"] > 0
    assert figures.outcomes["write: committed"] > 0
    assert figures.looks > 0


def test_rows_that_are_missing_or_there_twice_are_counted(
    postgresql_server: str, tmp_path: Path
) -> None:
    with replicas(postgresql_server, tmp_path) as running:
        battle = Battle(running, tmp_path, seed=1)
        table = battle.tables[0]
        (file,) = table.location.glob("p=*/*.parquet")
        battle.compare_now(table)
        assert_holds(battle.figures)

        shutil.copy(file, file.with_name("again.parquet"))
        battle.compare_now(table)
        assert len(battle.figures.doubled) == 3
        for one in table.location.glob("p=*/*.parquet"):
            one.unlink()
        battle.compare_now(table)
        assert len(battle.figures.lost) == 2 * 3
        battle.client.close()
