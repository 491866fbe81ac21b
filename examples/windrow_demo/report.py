"""The demo's results, for people and for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from windrow_calls.terminal.render import plan_picture
from windrow_core.cards import DASH, seconds_text
from windrow_core.sizes import size_text
from windrow_demo.measuring import Query, Side, Timing
from windrow_demo.outcome import DemoOutcome, SqlOutcome
from windrow_demo.sides import OURS, WINDROW


def comparison_report(outcome: DemoOutcome) -> list[RenderableType]:
    """Return the table of timings, a chart of the plan, and whether all sides agree."""
    summary = outcome.plan.summary
    title = Text(
        f"{summary.row_count:,} flights in {summary.files_planned:,} files, "
        f"{size_text(summary.size_bytes)}",
        "bold",
    )
    return [
        title,
        _table(outcome),
        _remarks(outcome),
        Text(),
        plan_picture(outcome.plan),
        Text(),
        *_sql(outcome.sql),
        Text(),
        _verdict(outcome),
    ]


def first_table(query: Query, sides: Sequence[Side], timings: Sequence[Timing]) -> Table:
    """Return the table of each side's first run, which is shown while the others are timed.

    Args:
        query: The query.
        sides: The sides, in the order of the report.
        timings: One per side.
    """
    table = _empty_table()
    _add_query(table, f"{query.title}: first run, Windrow's in a cold JVM", query, sides, timings)
    return table


def comparison_as_json(outcome: DemoOutcome) -> dict[str, Any]:
    """Return the demo's results as JSON values."""
    return {
        "agreed": outcome.agreed,
        "environment": outcome.environment,
        "fingerprints": {
            side: {"row_count": fingerprint.row_count, "hash_sum": str(fingerprint.hash_sum)}
            for side, fingerprint in outcome.fingerprints.items()
        },
        "spark_listing_s": outcome.listing_s,
        "windrow_refresh_s": outcome.refresh_s,
        "windrow_packing_s": outcome.pack_s,
        "windrow_plan_s": outcome.plan_s,
        "plan": outcome.plan.summary.model_dump(mode="json"),
        "sql": {
            "text": outcome.sql.text,
            "answer": list(outcome.sql.answer),
            "columns": list(outcome.sql.columns),
            "plan": outcome.sql.plan.summary.model_dump(mode="json"),
        },
        "results": [
            {
                "side": timing.side,
                "query": timing.query,
                "task_count": timing.task_count,
                "median_s": timing.median_s,
                "seconds": list(timing.seconds),
                "open_seconds": list(timing.open_seconds),
                "ratio": timing.median_s / outcome.timing(WINDROW, timing.query).median_s,
            }
            for timing in outcome.timings
        ],
    }


def _table(outcome: DemoOutcome) -> Table:
    table = _empty_table()
    for query in outcome.queries:
        _add_query(table, query.title, query, outcome.sides, outcome.timings)
    table.add_row(Text("Once before the first query (not included above)", "bold"))
    table.add_row("  Spark lists the folders", DASH, seconds_text(outcome.listing_s), "")
    table.add_row(
        "  Windrow lists the folders and reads every footer",
        DASH,
        seconds_text(outcome.refresh_s),
        "",
    )
    table.add_row(
        "  Windrow packs the rows of all files, for the side that says so",
        DASH,
        seconds_text(outcome.pack_s),
        "",
    )
    return table


def _empty_table() -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(overflow="fold")
    for name in ("tasks", "seconds", "Windrow is"):
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _add_query(
    table: Table, title: str, query: Query, sides: Sequence[Side], timings: Sequence[Timing]
) -> None:
    by_side = {timing.side: timing for timing in timings if timing.query == query.name}
    table.add_row(Text(title, "bold"))
    for side in sides:
        timing, ours = by_side[side.name], side.name in OURS
        table.add_row(
            f"  {side.title}",
            f"{timing.task_count:,}",
            seconds_text(timing.median_s),
            "" if ours else ratio_text(timing.median_s / by_side[WINDROW].median_s),
            style="green" if ours else None,
        )
    table.add_section()


def _sql(sql: SqlOutcome) -> list[RenderableType]:
    """Show a query in SQL, its answer, and how little was planned for it."""
    answer = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in sql.answer[0] if sql.answer else ():
        answer.add_column(name)
    for row in sql.answer:
        answer.add_row(*map(str, row.values()))
    summary = sql.plan.summary
    return [
        Text("SQL on a view: Windrow plans what the query needs", "bold"),
        Text(),
        Text(sql.text, "cyan"),
        answer,
        Text(
            f"Its plan: {len(sql.columns)} of {sql.all_columns} columns "
            f"({', '.join(sorted(sql.columns))}) of {summary.files_planned:,} of "
            f"{summary.files_total:,} files, {size_text(summary.size_bytes)} in "
            f"{summary.group_count:,} groups. Partition values leave out "
            f"{summary.files_pruned_by_partition:,} files, and statistics "
            f"{summary.files_pruned_by_statistics:,}."
        ),
    ]


def ratio_text(ratio: float) -> str:
    """Return how much faster Windrow is, such as `4.2x faster` or `1.3x slower`.

    Args:
        ratio: The peer's seconds divided by Windrow's.
    """
    return f"{ratio:.1f}x faster" if ratio >= 1 else f"{1 / ratio:.1f}x slower"


def _remarks(outcome: DemoOutcome) -> Text:
    runs = len(outcome.timings[0].seconds)
    environment = outcome.environment
    facts = ", ".join(f"{name} {environment[name]}" for name in ("Spark", "PyArrow", "Windrow"))
    slow = " (no more of them, to end within five minutes)" if outcome.is_cut_short else ""
    return Text(
        f"{'Medians of ' if runs > 1 else ''}{runs} warm run{'s' if runs > 1 else ''}{slow} in one "
        f"session, in turns: {facts}, {environment['master']} "
        f"on {environment['parallelism']} cores. All sides use Spark's default settings: "
        f"adaptive execution {environment['adaptive execution']}, "
        f"{environment['shuffle partitions']} shuffle partitions; the second side changes "
        "only openCostInBytes. Spark keeps its listing for the lifetime of the DataFrame; Windrow "
        "keeps its inventory and makes a new plan for each run "
        f"({seconds_text(outcome.plan_s)} each, included in its figures).",
        "dim",
    )


def _verdict(outcome: DemoOutcome) -> Text:
    fingerprint = outcome.fingerprints[WINDROW]
    if outcome.agreed:
        return Text(
            f"All sides agree: equal answers. Windrow and Spark read the same {fingerprint.row_count:,} "
            f"rows, sum of row hashes {fingerprint.hash_sum}.",
            "bold green",
        )
    lines = [
        f"  {side}: {fingerprint.row_count:,} rows, sum of row hashes {fingerprint.hash_sum}"
        for side, fingerprint in outcome.fingerprints.items()
    ]
    schemas = {fingerprint.columns for fingerprint in outcome.fingerprints.values()}
    if len(schemas) > 1:
        lines += [
            f"  {side}: {dict(fingerprint.columns)}"
            for side, fingerprint in outcome.fingerprints.items()
        ]
    lines += [f"  {timing.side}, {timing.query}: {timing.answer[:3]}" for timing in outcome.timings]
    return Text("\n".join(["The sides do NOT agree:", *lines]), "bold red")
