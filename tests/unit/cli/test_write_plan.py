"""`windrow write-plan` and its output, against a real coordinator process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from tests.support.plans.writes import ZIPF, counts_of_days
from tests.unit.cli.conftest import Command, Said
from windrow_calls.terminal.render import drawn
from windrow_core.models import Column, WritePlan, WritePlanRequest
from windrow_service.usecases.writes.drafts import WriteDraft

SCHEMES = {"coalesce", "repartition", "columns", "salted", "range_hash", "exact"}


def drafted(**request: Any) -> WritePlan:
    return WriteDraft(
        request=WritePlanRequest.model_validate(request),
        table=None,
        snapshot=None,
        files=None,
        reports=(),
        last_keys=None,
    ).plan()


def printed(plan: WritePlan, width: int) -> list[str]:
    console = Console(width=width, highlight=False)
    with console.capture() as capture:
        console.print(drawn(plan))
    return [line.rstrip() for line in capture.get().splitlines()]


@pytest.fixture
def planned(windrow: Command, sales: Path) -> str:
    windrow("table", "register", "written.sales", str(sales))
    assert windrow("table", "refresh", "written.sales").code == 0
    return "written.sales"


def _plan(said: Said) -> WritePlan:
    assert (said.code, said.err) == (0, "")
    return WritePlan.model_validate(json.loads(said.out))


@pytest.mark.parametrize("width", [80, 120])
def test_a_comparison_fits_the_terminal_and_names_every_scheme(width: int) -> None:
    plan = drafted(
        keys=counts_of_days(ZIPF.tolist()), target_file_size="1MB", bytes_per_row=1048.576
    )

    lines = printed(plan, width)

    assert max(map(len, lines)) <= width
    text = "\n".join(lines)
    assert all(text.count(f"\n  {scheme} ") == 2 for scheme in SCHEMES)
    assert "1,109,404" in text
    assert "chosen: the rows of each partition are known" in text
    assert "1.18 times the target" in text


def test_one_scheme_is_explained_without_the_others() -> None:
    plan = drafted(
        keys=counts_of_days([5_000] * 365),
        target_rows=1_000,
        files_per_key=5,
        scheme="salted",
        compare=False,
    )

    text = " ".join(printed(plan, 80))

    assert "Write 1,825 files of about 1,000 rows with salted (5 salts, scale 5)" in text
    assert "as requested, although one task writes" in text
    assert "side by side" not in text


def test_a_comparison_shows_severe_collisions_and_the_most_keys_in_a_task() -> None:
    plan = drafted(keys=counts_of_days([5_000] * 365), target_rows=1_000)

    lines = printed(plan, 80)

    row = next(line.split() for line in lines if line.lstrip().startswith("columns "))
    (found,) = (one for one in plan.others if one.scheme == "columns")
    assert 0 < found.severe_collisions < found.collisions
    assert row[-1] == str(found.most_keys_in_a_task)
    assert row[-3:-1] == [f"{100 * found.severe_collisions:.0f}", "%"]


def test_a_plan_takes_a_number_of_files_and_source_tasks(windrow: Command, planned: str) -> None:
    counts = ["--keys-from", "files", "--compare", "--json"]
    plan = _plan(windrow("write-plan", planned, "--files", "6", "--source-tasks", "7", *counts))
    salted = _plan(
        windrow(
            "write-plan",
            planned,
            *counts,
            "--scheme",
            "salted",
            "--efficiency",
            "0.5",
            "--target-rows",
            "10",
        )
    )

    (coalesce,) = (one for one in plan.others if one.scheme == "coalesce")
    assert (plan.basis, plan.target_file_rows) == ("static", 10)
    assert "source_tasks" not in coalesce.reason
    assert salted.scale == 1


def test_counts_can_be_files_of_any_format(windrow: Command, planned: str, tmp_path: Path) -> None:
    rows = [{"ds": "2026-11-01", "rows": 10}, {"ds": "2026-11-02", "rows": 2_500}]
    table = pa.table({"ds": [row["ds"] for row in rows], "rows": [row["rows"] for row in rows]})
    pq.write_table(table, tmp_path / "counts.parquet")
    (tmp_path / "counts.json").write_text(json.dumps(rows))
    (tmp_path / "counts.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "counts.csv").write_text("ds,rows\n2026-11-01,10\n2026-11-02,2500\n")

    for suffix in ("parquet", "json", "jsonl", "csv"):
        counts = str(tmp_path / f"counts.{suffix}")
        said = windrow("write-plan", planned, "--counts", counts, "--target-rows", "1000", "--json")
        plan = _plan(said)
        assert plan.keys is not None
        assert (plan.keys.columns, plan.keys.files) == ([Column(name="ds", type="date")], [1, 3])
        assert plan.others == []


def test_a_plan_as_text_says_what_to_do(windrow: Command, planned: str) -> None:
    said = windrow(
        "write-plan", planned, "--keys-from", "files", "--target-rows", "15", "--compare"
    )

    assert (said.code, said.err) == (0, "")
    assert "with exact\nwhy\tthe rows of each partition are known" in said.out
    assert "Schemes side by side" in said.out


@pytest.mark.parametrize(
    ("arguments", "remedy"),
    [
        (["--target-size", "0"], "bytes from 1 to"),
        (["--target-rows", "5"], "give --rows, --counts"),
        (["--rows", "100", "--target-rows", "1", "--max-files", "5"], "raise --max-files"),
        (["--counts", "missing.csv"], "missing.csv cannot be read"),
        (["--keys-from", "history"], "--keys-from files"),
    ],
)
def test_an_impossible_plan_is_refused_in_one_line_with_a_remedy(
    windrow: Command, planned: str, arguments: list[str], remedy: str
) -> None:
    said = windrow("write-plan", planned, *arguments)

    assert said.code == 1
    assert remedy in said.err
    assert said.err.count("\n") == 1


def test_a_file_of_counts_without_the_columns_is_refused(
    windrow: Command, planned: str, tmp_path: Path
) -> None:
    counts = tmp_path / "counts.csv"
    counts.write_text("day,rows\n2026-11-01,10\n")

    said = windrow("write-plan", planned, "--counts", str(counts))

    assert said.code == 1
    assert "has no column ds: it must hold ds, rows" in said.err
