"""Results of the demo of engines, for people and for programs."""

from __future__ import annotations

from typing import Any

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from windrow_core.cards import DASH, seconds_text
from windrow_demo.engine_sides import ALL_ROWS, FOLDER, ONE_DAY, PACKED, QUESTIONS, TITLES, WINDROW
from windrow_demo.engines import EngineReads, EnginesOutcome
from windrow_demo.report import ratio_text

# What reads the bare folder, if that is not the engine.
_ON_FOLDERS = {"pyiceberg": "PyArrow's dataset"}
_QUESTIONS = {ONE_DAY: "Rows of one day", ALL_ROWS: "All rows, all columns"}


def engines_report(outcome: EnginesOutcome) -> list[RenderableType]:
    """Return the table of seconds, and whether all engines agree."""
    rows = outcome.reads[0].rows[ALL_ROWS]
    title = Text(f"{rows:,} flights in {outcome.files:,} files", "bold")
    return [title, _table(outcome), _remarks(outcome), Text(), _verdict(outcome)]


def engines_as_json(outcome: EnginesOutcome) -> dict[str, Any]:
    """Return the demo's results as JSON values."""
    return {
        "agreed": outcome.agreed,
        "files": outcome.files,
        "windrow_refresh_s": outcome.refresh_s,
        "windrow_describe_s": outcome.describe_s,
        "windrow_pack_s": outcome.pack_s,
        "results": [
            {
                "engine": one.engine,
                "way": one.way,
                "version": one.version,
                "seconds": dict(one.seconds),
                "rows": dict(one.rows),
                "wrong": list(one.wrong),
            }
            for one in outcome.reads
        ],
    }


def _table(outcome: EnginesOutcome) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(overflow="fold")
    for name in ("bare folder", "by Windrow", "Windrow is", "packed", "packs are"):
        table.add_column(name, justify="right", no_wrap=True)
    by_engine: dict[str, dict[str, EngineReads]] = {}
    for one in outcome.reads:
        by_engine.setdefault(one.engine, {})[one.way] = one
    for question in QUESTIONS:
        table.add_row(Text(_QUESTIONS[question], "bold"))
        for engine, ways in by_engine.items():
            bare, ours = (ways[way].seconds[question] for way in (FOLDER, WINDROW))
            packs = ways[PACKED].seconds[question] if PACKED in ways else None
            peer = _ON_FOLDERS.get(engine)
            table.add_row(
                f"  {TITLES[engine]}{f' (folder: {peer})' if peer else ''}",
                seconds_text(bare),
                seconds_text(ours),
                ratio_text(bare / ours),
                DASH if packs is None else seconds_text(packs),
                DASH if packs is None else ratio_text(bare / packs),
            )
        table.add_section()
    return table


def _remarks(outcome: EnginesOutcome) -> Text:
    versions = {TITLES[one.engine]: one.version for one in outcome.reads}
    facts = ", ".join(f"{name} {version}" for name, version in versions.items())
    return Text(
        f"One run of each, in a process of its own: {facts}. Opening the table is part of each read: "
        "on the bare folder, engines list it and open footers each time. Once before, Windrow took "
        f"its inventory ({seconds_text(outcome.refresh_s)}) and described the table to engines "
        f"({seconds_text(outcome.describe_s)}). DuckDB, Polars and PyIceberg read it as an Iceberg "
        "table, Spark with Windrow's client, all by the same coordinator. PyIceberg makes a schema of "
        "each file anew, in Python, which takes long for many small files. Packing took "
        f"{seconds_text(outcome.pack_s)}, and left the table's files as they are; Spark reads these.",
        "dim",
    )


def _verdict(outcome: EnginesOutcome) -> Text:
    if outcome.agreed:
        return Text("All engines returned the rows that were written, in all ways.", "bold green")
    lines = [
        f"  {TITLES[one.engine]}, {one.way}: {_QUESTIONS[question]}, {one.rows[question]:,} rows"
        for one in outcome.reads
        for question in one.wrong
    ]
    return Text("\n".join(["These rows are NOT those that were written:", *lines]), "bold red")
