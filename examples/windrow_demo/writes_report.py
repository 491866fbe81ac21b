"""Results of the demo of writes, for people and for programs."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from windrow_calls.terminal.render import picture
from windrow_core.cards import seconds_text
from windrow_core.sizes import size_text
from windrow_demo.report import ratio_text
from windrow_demo.writes import WritesOutcome, WrittenTable

# The numbers of the textbook example; the demo uses smaller ones.
TEXTBOOK_TASKS, TEXTBOOK_DAYS = 2_000, 365


def writes_report(outcome: WritesOutcome) -> list[RenderableType]:
    """Return charts of both tables, their figures, and whether all rows are there."""
    without, with_plan = outcome.exploded, outcome.planned
    title = Text(
        f"{outcome.source.row_count:,} events of {outcome.days:,} days, "
        f"target file size {size_text(outcome.target_bytes)}",
        "bold",
    )
    return [
        title,
        Text(),
        picture(f"Written by {without.title}", "file", without.sizes, "red"),
        Text(),
        picture(f"Written by {with_plan.title}", "file", with_plan.sizes, "green"),
        Text(),
        _table(outcome),
        _remarks(outcome),
        Text(),
        _verdict(outcome),
    ]


def writes_as_json(outcome: WritesOutcome) -> dict[str, Any]:
    """Return the demo's results as JSON values."""
    return {
        "agreed": outcome.agreed,
        "rows": outcome.source.row_count,
        "days": outcome.days,
        "tasks": outcome.tasks,
        "target_bytes": outcome.target_bytes,
        "tables": [
            {
                "title": table.title,
                "files": len(table.sizes),
                "small_files": small_files(table, outcome.target_bytes),
                "bytes": pc.sum(table.sizes).as_py(),
                "largest_file_bytes": pc.max(table.sizes).as_py(),
                "write_s": table.write_s,
                "read_s": table.read_s,
                "hash_sum": str(table.rows.hash_sum),
            }
            for table in (outcome.exploded, outcome.planned)
        ],
        "report": outcome.report.model_dump(mode="json", exclude={"keys"}),
    }


def small_files(table: WrittenTable, target_bytes: int) -> int:
    """Count the files smaller than half the target."""
    small: pa.Scalar = pc.sum(pc.less(table.sizes, target_bytes // 2))
    return int(small.as_py() or 0)


def _table(outcome: WritesOutcome) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(overflow="fold")
    for name in ("files", "mean size", "total size", "write time", "read time"):
        table.add_column(name, justify="right", no_wrap=True)
    for outcome_table, style in ((outcome.exploded, "red"), (outcome.planned, "green")):
        table.add_row(
            outcome_table.title,
            f"{len(outcome_table.sizes):,}",
            size_text(pc.mean(outcome_table.sizes).as_py()),
            size_text(pc.sum(outcome_table.sizes).as_py()),
            seconds_text(outcome_table.write_s),
            seconds_text(outcome_table.read_s),
            style=style,
        )
    fewer = len(outcome.exploded.sizes) / len(outcome.planned.sizes)
    table.add_row(
        Text("Windrow", "bold"),
        f"{fewer:,.0f}x fewer",
        "",
        "",
        ratio_text(outcome.exploded.write_s / outcome.planned.write_s),
        ratio_text(outcome.exploded.read_s / outcome.planned.read_s),
    )
    return table


def _remarks(outcome: WritesOutcome) -> Text:
    report = outcome.report
    return Text(
        f"Each of the {outcome.tasks:,} tasks holds rows of nearly every day, so it writes a file "
        f"into nearly every day's folder; {TEXTBOOK_TASKS:,} tasks would make up to "
        f"{TEXTBOOK_TASKS * TEXTBOOK_DAYS:,} files for a year. Windrow counted the rows of each "
        f"day ({seconds_text(report.count_seconds)}), planned {report.planned_files or 0:,} files "
        f"in {report.tasks:,} tasks, wrote them ({seconds_text(report.write_seconds)}), "
        f"checked them against the input ({seconds_text(report.check_seconds)}), and moved them "
        f"into the table ({seconds_text(report.commit_seconds)}). Days with too few rows for a "
        "whole file get one small file.",
        "dim",
    )


def _verdict(outcome: WritesOutcome) -> Text:
    source = outcome.source
    if outcome.agreed:
        return Text(
            f"Both tables hold the same {source.row_count:,} rows, sum of row hashes "
            f"{source.hash_sum}.",
            "bold green",
        )
    lines = [
        f"  {title}: {rows.row_count:,} rows, sum of row hashes {rows.hash_sum}"
        for title, rows in (
            ("source", source),
            (outcome.exploded.title, outcome.exploded.rows),
            (outcome.planned.title, outcome.planned.rows),
        )
    ]
    return Text("\n".join(["The tables do NOT hold the same rows:", *lines]), "bold red")
