"""`windrow explain` and its output, against a real coordinator process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import pytest
from rich.console import Console

from tests.unit.cli.conftest import Command, Said
from windrow_calls.terminal.render import drawn
from windrow_core.models import (
    GroupReason,
    Locality,
    PlanExplanation,
    PlanOptions,
    PrunedFiles,
    StrategyFigures,
    WorkerPlacement,
)
from windrow_core.planning import StrategyName

STRATEGIES = list(get_args(StrategyName))
GIB = 2**30


@pytest.fixture
def refreshed(windrow: Command, sales: Path) -> str:
    windrow("table", "register", "explained.events", str(sales))
    assert windrow("table", "refresh", "explained.events").code == 0
    return "explained.events"


def _json(said: Said) -> Any:
    assert (said.code, said.err) == (0, "")
    return json.loads(said.out)


def _figures(strategy: str, groups: int, seconds: float) -> StrategyFigures:
    return StrategyFigures(
        strategy=strategy,
        group_count=groups,
        fewest_groups=90,
        fill=0.9,
        host_local_bytes=GIB,
        longest_task_seconds=1.5,
        slowest_slot_seconds=seconds,
        all_tasks_seconds=100.0,
    )


SAID = PlanExplanation(
    plan_id="0" * 32,
    table="sales.events",
    snapshot_id=3,
    options=PlanOptions(parallelism=16),
    open_file_cost=32_768,
    files_total=10_000,
    files_planned=4_000,
    size_bytes=4 * GIB,
    split_count=4_100,
    pruned=[
        PrunedFiles(step="partition", files=6_000, size_bytes=5 * GIB),
        PrunedFiles(step="bloom", files=0, size_bytes=0),
    ],
    reasons=[
        GroupReason(reason="cacheable", groups=0, splits=0, size_bytes=0),
        GroupReason(reason="small", groups=99, splits=4_099, size_bytes=3 * GIB),
    ],
    placements=[
        WorkerPlacement(
            host="cache-1", cached_files=4_000, cached_bytes=GIB, placed_files=0, placed_bytes=0
        ),
        WorkerPlacement(
            host=None, cached_files=0, cached_bytes=0, placed_files=7, placed_bytes=2_048
        ),
    ],
    fill_histogram=[0] * 9 + [99],
    locality=Locality(
        host_bytes=GIB, rack_bytes=GIB // 1000, elsewhere_bytes=GIB, unknown_bytes=2 * GIB
    ),
    strategies=[_figures("balanced", 99, 7.0), _figures("spark", 5_000, 14.0)],
)


def _lines(said: PlanExplanation, width: int = 100) -> list[str]:
    console = Console(width=width, color_system=None)
    with console.capture() as captured:
        console.print(drawn(said))
    return [line.rstrip() for line in captured.get().splitlines()]


def _row(lines: list[str], name: str) -> list[str]:
    line = next(line for line in lines if line.strip().startswith(name))
    return line.split()


def test_explain_describes_the_plan_and_shows_every_part(windrow: Command, refreshed: str) -> None:
    said = windrow("explain", refreshed, "--filter", "ds >= '2026-11-02'", "--parallelism", "2")

    assert said.code == 0
    first = " ".join(said.out.split("\n\n")[0].split())
    assert f"table {refreshed}, snapshot 1 files 4 of 6, " in first
    assert "groups 2 of at most 64 MB, packed by balanced for 2 tasks at a time" in first
    for part in ("Pruning", "Groups", "Fill of the groups", "Comparison of strategies"):
        assert f"\n{part}\n" in said.out
    for strategy in STRATEGIES:
        assert f"\n{strategy}\t" in said.out
    assert "Times are predicted" in said.out


@pytest.mark.parametrize("digits", [8, 32])
def test_explain_with_an_id_explains_that_plan(
    windrow: Command, refreshed: str, digits: int
) -> None:
    plan = _json(windrow("plan", refreshed, "--strategy", "openlookeng", "--limit", "5", "--json"))

    said = _json(windrow("explain", plan["plan_id"][:digits], "--json"))

    assert said["plan_id"] == plan["plan_id"]
    assert said["options"] == plan["options"]
    assert said["files_planned"] == plan["summary"]["files_planned"] == 1
    own = said["strategies"][0]
    assert (own["strategy"], own["group_count"]) == ("openlookeng", len(plan["groups"]))


def test_explain_with_a_table_plans_it_with_the_options(windrow: Command, refreshed: str) -> None:
    options = ("--parallelism", "3", "--max-split-size", "1MB", "--strategy", "tez")

    said = _json(windrow("explain", refreshed, *options, "--columns", "id", "--json"))

    assert said["options"]["parallelism"] == 3
    assert said["options"]["max_split_size"] == 2**20
    assert said["strategies"][0]["strategy"] == "tez"


def test_explain_with_an_id_takes_no_planning_options(windrow: Command) -> None:
    said = windrow("explain", "0" * 32, "--max-split-size", "1MB", "--limit", "5")

    assert said.code == 2
    assert "--limit, --max-split-size" in said.err
    assert said.err.count("\n") == 1


def test_explain_of_a_missing_plan_is_refused_in_one_line(windrow: Command) -> None:
    said = windrow("explain", "0" * 32)

    assert (said.code, said.out) == (1, "")
    assert "0" * 32 in said.err
    assert said.err.count("\n") == 1


def test_explain_of_digits_that_name_nothing_speaks_of_plans_and_tables(windrow: Command) -> None:
    said = windrow("explain", "ffffffff")

    assert (said.code, said.out) == (1, "")
    assert "no plan has an id that begins with ffffffff, and no table has this name" in said.err
    assert said.err.count("\n") == 1


def test_explain_of_a_plan_without_files_shows_only_pruning(
    windrow: Command, refreshed: str
) -> None:
    said = windrow("explain", refreshed, "--filter", "ds = '2030-01-01'")

    assert said.code == 0
    assert "files 0 of 6, 0 B, 0 splits groups none" in " ".join(said.out.split())
    assert "Pruning" in said.out
    assert "Comparison of strategies" not in said.out


def test_nothing_is_wider_than_a_terminal_of_100_columns() -> None:
    assert not any("…" in line for line in _lines(SAID))
    assert max(len(line) for line in _lines(SAID)) <= 100


def test_bars_are_in_proportion() -> None:
    lines = _lines(SAID)

    pruned, planned = (_row(lines, name)[-1] for name in ("partition values", "planned"))
    assert (pruned.count("█"), planned.count("█")) == (18, 12)
    slots = lines[lines.index("Comparison of strategies") :]
    own, other = ("".join(_row(slots, name)).count("█") for name in ("balanced", "spark"))
    assert other == 2 * own


def test_a_step_that_pruned_nothing_is_shown_but_a_reason_without_groups_is_not() -> None:
    lines = _lines(SAID)

    assert _row(lines, "Bloom filters") == ["Bloom", "filters", "0", "0", "B"]
    assert not any("cacheable:" in line for line in lines)


def test_the_plans_own_strategy_comes_first_with_all_of_its_figures() -> None:
    lines = _lines(SAID)
    table = lines[lines.index("Comparison of strategies") :]

    names = [line.split()[0] for line in table if line.strip().startswith(("bal", "spark"))]
    assert names == ["balanced", "spark"]
    own = " ".join(word for word in _row(table, "balanced") if "█" not in word)
    assert own == "balanced 99 90 90 % 50 % 1.50 s 7.00 s 100 s"


def test_a_tiny_share_is_not_shown_as_zero() -> None:
    assert "< 1 %" in " ".join(_row(_lines(SAID), "in its rack"))


def test_workers_of_cacheable_files_and_files_without_a_worker_are_shown() -> None:
    lines = _lines(SAID)

    assert _row(lines, "cache-1")[1:8] == ["4,000", "1", "GB", "0", "0", "B", "█" * 30]
    assert _row(lines, "no room")[:7] == ["no", "room", "anywhere", "0", "0", "B", "7"]
    assert not any(
        "Workers for cacheable files" in line
        for line in _lines(SAID.model_copy(update={"placements": []}))
    )
