"""`windrow table drop-partitions`, against a real coordinator process."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.tables import hive
from tests.unit.cli.conftest import Command
from windrow.connecting import connect

TABLE = "dropped.events"
FIRST, SECOND, THIRD = hive.DAYS


@pytest.fixture
def location(coordinator_url: str, tables_root: Path) -> Iterator[Path]:
    location = hive.write_events(tables_root / "dropped")
    with connect(coordinator_url) as client:
        client.register_table(TABLE, str(location))
        client.refresh(TABLE)
        yield location
        client.delete_table(TABLE)
    shutil.rmtree(location)


def test_partitions_are_shown_first_and_removed_by_consent(
    windrow: Command, location: Path
) -> None:
    command = ("table", "drop-partitions", TABLE, "--filter", f"ds < '{THIRD}'")

    refused = windrow(*command)
    assert (refused.code, refused.out) == (1, "")
    assert "--yes" in refused.err
    assert "--dry-run" in refused.err
    shown = windrow(*command, "--dry-run")
    assert "2 folders, 4 files with 40 rows" in shown.out
    assert f"ds={FIRST}" in shown.out
    assert (location / f"ds={FIRST}").exists()

    done = json.loads(windrow(*command, "--yes", "--json").out)["removal"]
    assert (done["files"], done["folders"]) == (4, [f"ds={FIRST}", f"ds={SECOND}"])
    assert not (location / f"ds={FIRST}").exists()
    assert "no partition" in windrow(*command).out


def test_a_protected_table_names_the_command_that_ends_the_protection(
    windrow: Command, location: Path
) -> None:
    protection = windrow("table", "protect", TABLE)
    refusals = [
        windrow("table", "delete", TABLE),
        windrow("table", "expire", TABLE),
        windrow("table", "drop-partitions", TABLE, "--filter", f"ds = '{FIRST}'", "--yes"),
    ]
    details = windrow("table", "show", TABLE)
    end = windrow("table", "unprotect", TABLE)

    assert f"windrow table unprotect {TABLE}" in protection.out
    for refusal in refusals:
        assert refusal.code == 1
        assert f": `windrow table unprotect {TABLE}`" in refusal.err
    assert "from deletion" in details.out
    assert "is not protected" in end.out
    assert (location / f"ds={FIRST}").exists()
