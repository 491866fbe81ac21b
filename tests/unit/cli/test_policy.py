"""`windrow policy …`, against a real coordinator process."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path

import pytest

from tests.support.tables import hive
from tests.unit.cli.conftest import Command


@pytest.fixture
def policies(windrow: Command) -> Iterator[Command]:
    """Run `windrow policy …`; its policies are removed afterwards."""
    yield lambda *words: windrow("policy", *words)
    for pattern in ("shop.*", "shop.events"):
        windrow("policy", "remove", pattern)


def test_a_policy_is_set_in_words_and_only_what_is_given_changes(policies: Command) -> None:
    empty = policies("list")
    made = policies(
        *("set", "shop.*", "--target", "256MB", "--min-age", "1h", "--max-share", "25%"),
        *("--window", "22:00-06:00", "--window", "12:00-13:00 Europe/Berlin"),
    )
    changed = policies("set", "shop.*", "--off", "--unset", "max-share", "--json")
    listed = policies("list")

    assert "nothing is maintained" in empty.out
    assert made.code == 0
    assert (
        "shop.*: maintained\ntarget\t256 MB\nmin age\t1h\nwindow\t22:00-06:00 UTC, 12:00-13:00 Europe/Berlin\n"
        in made.out
    )
    assert "max share\t25%" in made.out
    policy = json.loads(changed.out)
    assert (policy["enabled"], policy["max_share"]) == (False, None)
    assert policy["windows"] == ["22:00-06:00", "12:00-13:00 Europe/Berlin"]
    assert "shop.*" in listed.out
    assert "no" in listed.out


def test_a_table_shows_which_policy_says_what(
    policies: Command, windrow: Command, sales: Path
) -> None:
    windrow("table", "register", "shop.events", str(sales))
    nothing = policies("show", "shop.events")
    policies("set", "shop.*", "--target", "256MB")
    policies("set", "shop.events", "--filter", "ds > '2026-11-01'")

    shown = policies("show", "shop.events")

    assert "no policy applies to it" in nothing.out
    assert "shop.events is maintained, from shop.events" in shown.out
    assert "256 MB, from shop.*" in shown.out
    assert "ds > '2026-11-01', from shop.events" in shown.out
    assert "15m, by default" in shown.out
    assert "removed the policy for shop.events" in policies("remove", "shop.events").out
    assert "there is no policy for 'shop.events'" in policies("remove", "shop.events").err


def test_the_budget_is_shown_and_changed(policies: Command) -> None:
    default = policies("budget")
    less = policies("budget", "--bytes", "100GB")
    paused = policies("budget", "--core-seconds", "0")
    again = policies("budget", "--core-seconds", "3600", "--any-bytes")

    assert default.out == again.out == "3,600 core seconds and any number of bytes an hour\n"
    assert "100 GB of small files an hour" in less.out
    assert "all maintenance is paused" in paused.out


def test_partitions_are_dropped_by_themselves_only_by_consent_after_a_look(
    policies: Command, windrow: Command, tables_root: Path
) -> None:
    for day in ("2020-01-01", f"{datetime.now(timezone.utc).date()}"):
        hive.write_file(tables_root / "kept" / f"ds={day}" / "a.parquet", range(5))
    windrow("table", "register", "shop.kept", str(tables_root / "kept"))
    windrow("table", "refresh", "shop.kept")
    words = ("set", "shop.kept", "--keep-days", "90", "--keep-zone", "Europe/Berlin")

    refusal = policies(*words)
    look = policies(*words, "--dry-run")
    nothing = policies("list")
    consent = policies(*words, "--yes")
    maintenance = policies("show", "shop.kept")
    end = policies("set", "shop.kept", "--unset", "keep-days")
    windrow("policy", "remove", "shop.kept")
    windrow("table", "delete", "shop.kept")

    assert (refusal.code, refusal.out) == (1, "")
    assert "--yes" in refusal.err
    assert "--dry-run" in refusal.err
    assert "would drop 1 partition now, with 1 file" in look.out
    assert "ds=2020-01-01" in look.out
    assert "nothing is maintained" in nothing.out
    assert "keep days\t90\nkeep zone\tEurope/Berlin\n" in consent.out
    assert "keep days\t90, from shop.kept" in maintenance.out
    assert end.code == 0
    assert "keep days" not in end.out


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("set", "shop*"), "names no tables"),
        (("set", "shop.*", "--max-share", "25"), "such as 25%"),
        (("set", "shop.*", "--min-age", "soon"), "such as 90d"),
        (("set", "shop.*", "--keep-days", "0"), "keep-days"),
        (("set", "shop.*", "--unset", "everything"), "is not one of target"),
        (("budget", "--bytes", "1GB", "--any-bytes"), "give only one"),
    ],
)
def test_wrong_options_are_named(policies: Command, words: tuple[str, ...], reason: str) -> None:
    refusal = policies(*words)

    assert refusal.code == 2
    assert reason in refusal.err
