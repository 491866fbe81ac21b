"""`windrow maintain --explain`: what is decided about a table and why, against a real coordinator."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.support.servers.coordinators import PLAIN
from tests.unit.cli.conftest import Command

TABLE = "kept.events"


@pytest.fixture
def explain(windrow: Command, sales: Path) -> Iterator[Command]:
    """Explain the table; its policy is removed afterwards."""
    windrow("table", "register", TABLE, str(sales))
    windrow("table", "refresh", TABLE)
    yield lambda *words: windrow("maintain", "--explain", TABLE, *words)
    windrow("policy", "remove", TABLE)


def decide(url: str) -> None:
    httpx.post(f"{url}/maintenance/rounds", verify=PLAIN, timeout=60).raise_for_status()


def test_a_table_says_why_nothing_happens_and_what_comes_next(
    explain: Command, windrow: Command, coordinator_url: str
) -> None:
    without = explain()
    windrow("policy", "set", TABLE, "--min-age", "1h", "--reads-per-day", "100", "--min-gain", "0")
    decide(coordinator_url)
    quiet = explain()
    windrow("policy", "set", TABLE, "--min-age", "0m")
    decide(coordinator_url)
    due = explain()
    told = json.loads(explain("--json").out)

    assert "no policy applies to it" in without.out
    assert "left alone" in quiet.out
    assert "written to less than 1 hour ago" in " ".join(quiet.out.split())
    _, lines = due.out.split("when (UTC)")
    first, *others = lines.splitlines()[1:]
    assert "\tnext\t" in first
    assert any("was left alone" in line for line in others)
    assert told["receipts"][0]["state"] == "waiting"
    assert told["sources"]["enabled"] == TABLE
