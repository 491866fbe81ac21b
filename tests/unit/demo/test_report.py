"""The demo's report, from invented measurements."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timezone
from decimal import Decimal

import pyarrow as pa
import pytest
from rich.console import Console

from windrow_calls.plans import SplitPlan
from windrow_core.models import Plan, PlanOptions, PlanSummary, RefreshProgress, RefreshStatus
from windrow_demo.measuring import Fingerprint, Query, Side, Timing
from windrow_demo.outcome import DemoOutcome, SqlOutcome
from windrow_demo.report import comparison_as_json, comparison_report, ratio_text

NOW = datetime(2026, 11, 20, tzinfo=timezone.utc)
SECONDS = {
    ("spark-default", "aggregate"): (8.0, 9.0, 8.8),
    ("spark-tuned", "aggregate"): (5.0, 6.0, 4.0),
    ("windrow", "aggregate"): (2.0, 2.2, 1.9),
    ("spark-default", "shuffle"): (12.0, 12.0, 12.0),
    ("spark-tuned", "shuffle"): (6.0, 6.0, 6.0),
    ("windrow", "shuffle"): (8.0, 8.0, 8.0),
}


def _side(name: str, title: str) -> Side:
    return Side(name=name, title=title, open=lambda _: None, conf={})


def _query(name: str, title: str) -> Query:
    return Query(name=name, title=title, columns=("a",), ask=lambda table: table)


def _plan() -> SplitPlan:
    split = pa.struct([("path", pa.string()), ("size_bytes", pa.int64())])
    splits = [[{"path": f"{n}", "size_bytes": 5_000} for n in range(3)]]
    groups = pa.table(
        {"size_bytes": pa.array([15_000]), "splits": pa.array(splits, pa.list_(split))}
    )
    summary = PlanSummary(
        strategy="balanced",
        files_total=3,
        files_planned=3,
        files_pruned_by_partition=0,
        files_pruned_by_statistics=0,
        size_bytes=15_000,
        row_count=336_776,
        group_count=1,
        split_count=3,
        largest_group_bytes=15_000,
        smallest_group_bytes=15_000,
        largest_group_splits=3,
        groups_with_hosts=0,
        planning_seconds=0.02,
    )
    info = Plan(
        plan_id="p",
        status="completed",
        table="demo.flights",
        snapshot_id=1,
        created_at=NOW,
        expires_at=NOW,
        location="/data",
        columns=[],
        hidden_columns=[],
        partition_columns=[],
        sort_columns=[],
        filter=None,
        options=PlanOptions(),
        summary=summary,
        groups=[],
        next_page_token=None,
    )
    return SplitPlan(info, groups)


def _outcome(hash_sums: Mapping[str, int]) -> DemoOutcome:
    return DemoOutcome(
        sides=(
            _side("spark-default", "Spark, defaults"),
            _side("spark-tuned", "Spark, openCostInBytes=0"),
            _side("windrow", "Windrow, planning included"),
        ),
        queries=(_query("aggregate", "Plain aggregate"), _query("shuffle", "With a shuffle")),
        timings=tuple(
            Timing(
                side=side,
                query=query,
                seconds=seconds,
                open_seconds=(0.0,) * len(seconds),
                task_count=610,
                answer=((1,),),
            )
            for (side, query), seconds in SECONDS.items()
        ),
        fingerprints={
            side: Fingerprint(columns=(), row_count=336_776, hash_sum=Decimal(found))
            for side, found in hash_sums.items()
        },
        listing_s=5.4,
        pack_s=9.0,
        refresh=RefreshStatus(
            refresh_id="r",
            table="demo.flights",
            status="done",
            started_at=NOW,
            seconds=6.0,
            progress=RefreshProgress(phase="done"),
        ),
        refresh_s=6.5,
        plan=_plan(),
        plan_s=0.08,
        is_cut_short=False,
        sql=SqlOutcome(
            text="SELECT count(*) FROM flights WHERE month = 3",
            answer=({"carrier": "UA", "late": 12},),
            columns=("month", "carrier"),
            all_columns=19,
            plan=_plan().info,
        ),
        environment={
            "Spark": "4.3.0",
            "PyArrow": "26",
            "Windrow": "0.1",
            "master": "local[*]",
            "parallelism": "2",
            "adaptive execution": "on",
            "shuffle partitions": "200",
        },
    )


AGREED = {"spark-tuned": 7, "windrow": 7}


def _text(outcome: DemoOutcome) -> str:
    console = Console(width=100, color_system=None)
    with console.capture() as captured:
        for renderable in comparison_report(outcome):
            console.print(renderable)
    return captured.get()


@pytest.mark.parametrize(
    "line",
    [
        "336,776 flights in 3 files, 14.6 KB",
        "Spark, defaults 610 8.80 s 4.4x faster",
        "Spark, openCostInBytes=0 610 5.00 s 2.5x faster",
        "Windrow, planning included 610 2.00 s",
        "Spark, openCostInBytes=0 610 6.00 s 1.3x slower",
        "Spark lists the folders \N{EN DASH} 5.40 s",
        "Windrow lists the folders and reads every footer \N{EN DASH} 6.50 s",
        "adaptive execution on, 200 shuffle partitions",
        "Files before: 3 files",
        "Groups after: 1 group, ",
        "SELECT count(*) FROM flights WHERE month = 3",
        "Its plan: 2 of 19 columns (carrier, month) of 3 of",
        "Medians of 3 warm runs in one session",
        "All sides agree: equal answers. Windrow and Spark read the same 336,776 rows, sum of row "
        "hashes 7.",
    ],
)
def test_the_report_shows_medians_ratios_and_preparations(line: str) -> None:
    assert line in " ".join(_text(_outcome(AGREED)).split())


def test_fewer_rounds_than_usual_have_their_reason() -> None:
    outcome = _outcome(AGREED)
    timings = tuple(replace(one, seconds=one.seconds[:1]) for one in outcome.timings)

    said = _text(replace(outcome, timings=timings, is_cut_short=True))

    line = "1 warm run (no more of them, to end within five minutes) in one session"
    assert line in " ".join(said.split())


def test_differing_rows_are_reported_as_a_disagreement() -> None:
    outcome = _outcome(AGREED | {"windrow": 8})

    assert not outcome.agreed
    said = _text(outcome)
    assert "do NOT agree" in said
    assert "windrow: 336,776 rows, sum of row hashes 8" in said


def test_differing_answers_are_a_disagreement() -> None:
    outcome = _outcome(AGREED)
    *others, last = outcome.timings

    changed = replace(outcome, timings=(*others, replace(last, answer=((2,),))))

    assert outcome.agreed
    assert not changed.agreed


def test_the_report_for_programs_is_json_with_ratios_against_windrow() -> None:
    said = json.loads(json.dumps(comparison_as_json(_outcome(AGREED))))

    ratios = {(row["side"], row["query"]): row["ratio"] for row in said["results"]}
    assert ratios["spark-default", "aggregate"] == pytest.approx(4.4)
    assert ratios["windrow", "shuffle"] == 1.0


def test_a_ratio_shows_which_side_is_faster() -> None:
    assert (ratio_text(4.42), ratio_text(0.5)) == ("4.4x faster", "2.0x slower")
