"""The demo of engines: each reads the same table, from the bare folder, by Windrow and by packs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console

from windrow.connecting import connect
from windrow_calls.terminal.java import require_java
from windrow_calls.terminal.progress import refreshing
from windrow_core.cards import seconds_text
from windrow_demo.coordinator import running_coordinator
from windrow_demo.engine_sides import (
    ENGINES,
    FOLDER,
    ONE_DAY,
    PACKABLE,
    PACKAGES,
    PACKED,
    QUESTIONS,
    TABLE,
    TITLES,
    WINDROW,
)
from windrow_demo.errors import DemoError
from windrow_demo.flights import DAYS_IN_THE_YEAR, flights_table, write_flights
from windrow_demo.measuring import timed
from windrow_demo.progress import counting
from windrow_demo.write_once import begin_anew

_WORDS = {FOLDER: "bare folder", WINDROW: "by Windrow", PACKED: "by Windrow, packed"}


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineReads:
    """What an engine needed to read the table in one way.

    Attributes:
        engine: Name of the engine.
        way: `folder`, `windrow` or `packed`.
        version: Release of the engine.
        seconds: Seconds by question, opening the table included.
        rows: Rows by question.
        wrong: Questions for which the rows are not those that were written.
    """

    engine: str
    way: str
    version: str
    seconds: Mapping[str, float]
    rows: Mapping[str, int]
    wrong: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EnginesOutcome:
    """The demo's results.

    Attributes:
        reads: One per engine and way.
        files: Number of files of the table.
        refresh_s: Seconds of Windrow's refresh, which lists the folders and reads all footers.
        describe_s: Seconds of the first description as an Iceberg table.
        pack_s: Seconds of packing the files, between the reads by Windrow and those of packs.
    """

    reads: tuple[EngineReads, ...]
    files: int
    refresh_s: float
    describe_s: float
    pack_s: float

    @property
    def agreed(self) -> bool:
        """Whether all engines returned the rows that were written, in all ways."""
        return not any(one.wrong for one in self.reads)


def run_engines_demo(data: Path, *, days: int, console: Console) -> EnginesOutcome:
    """Run the demo; all its files stay under `data`.

    Args:
        data: Folder for the table, the coordinator's state and the logs.
        days: Number of days of the year that the table holds.
        console: Console for progress.

    Raises:
        DemoError: An engine is not installed, or failed.
    """
    require_java()
    for package in PACKAGES.values():
        if find_spec(package) is None:
            raise DemoError(
                f"{package} is not installed here: run `make demo-engines`, or pip install -r "
                "examples/windrow_demo/engines.txt"
            )
    data = data.resolve()
    folder = data / ("flights" if days == DAYS_IN_THE_YEAR else f"flights-{days}-days")
    work = data / "demo-engines"
    begin_anew(work)
    with counting(console, "Writing files") as progress:
        files = write_flights(folder, days, progress.expect, progress.advance)
    flights = flights_table(days)
    new_year = pc.and_(pc.equal(flights["month"], 1), pc.equal(flights["day"], 1))
    answers = {
        question: _sorted(flights.filter(new_year) if question == ONE_DAY else flights)
        for question in QUESTIONS
    }
    with (
        running_coordinator(work / "state", [data], work / "coordinator.log") as url,
        connect(url) as client,
    ):
        client.register_table(TABLE, str(folder))
        console.print("Taking Windrow's inventory: folders and footers …", style="dim")
        with refreshing(console, TABLE) as on_progress:
            _, refresh_s = timed(partial(client.refresh, TABLE, on_progress=on_progress))
        _, describe_s = timed(partial(client.describe_for_engines, TABLE))
        console.print("Reading one day, and then all rows, with each engine …", style="dim")
        sides = [(engine, way) for engine in ENGINES for way in (FOLDER, WINDROW)]
        reads = _reads(sides, url, folder, work, answers, console)
        _, pack_s = timed(partial(client.pack, TABLE))
        packed_sides = [(engine, PACKED) for engine in PACKABLE]
        reads += _reads(packed_sides, url, folder, work, answers, console)
    return EnginesOutcome(
        reads=tuple(reads),
        files=files,
        refresh_s=refresh_s,
        describe_s=describe_s,
        pack_s=pack_s,
    )


def _reads(
    sides: Sequence[tuple[str, str]],
    url: str,
    folder: Path,
    work: Path,
    answers: Mapping[str, pa.Table],
    console: Console,
) -> list[EngineReads]:
    """Read the table with engines, each in a way, one after the other."""
    reads = []
    with counting(console, "Reading", len(sides)) as progress:
        for engine, way in sides:
            one = _read(engine, way, url, folder, work / engine / way, answers)
            day, all_rows = (seconds_text(one.seconds[question]) for question in QUESTIONS)
            console.print(f"  {TITLES[engine]}, {_WORDS[way]}: one day {day}, all rows {all_rows}")
            progress.advance()
            reads.append(one)
    return reads


def _read(
    engine: str, way: str, url: str, folder: Path, work: Path, answers: Mapping[str, pa.Table]
) -> EngineReads:
    work.mkdir(parents=True)
    log = work / "log"
    command = [sys.executable, "-m", "windrow_demo.engine_sides"]
    with log.open("wb") as errors:
        process = subprocess.run(
            [*command, engine, way, url, str(folder), str(work)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            check=False,
        )
    if process.returncode:
        lines = log.read_text(errors="replace").strip().splitlines()
        raise DemoError(f"{engine} failed ({lines[-1] if lines else 'it said nothing'}): see {log}")
    output: dict[str, Any] = json.loads(process.stdout.splitlines()[-1])
    tables = {question: _rows(work / f"{question}.arrow") for question in QUESTIONS}
    return EngineReads(
        engine=engine,
        way=way,
        version=output["version"],
        seconds=output["seconds"],
        rows={question: len(rows) for question, rows in tables.items()},
        wrong=tuple(
            question for question, rows in tables.items() if not are_equal(rows, answers[question])
        ),
    )


def _rows(path: Path) -> pa.Table:
    with pa.memory_map(str(path)) as file:
        return pa.ipc.open_file(file).read_all()


def are_equal(rows: pa.Table, answer: pa.Table) -> bool:
    """Compare rows in any order; engines have different types for the same numbers and texts."""
    if sorted(rows.column_names) != sorted(answer.column_names):
        return False
    return bool(_sorted(rows.select(answer.column_names).cast(answer.schema)).equals(answer))


def _sorted(rows: pa.Table) -> pa.Table:
    return rows.sort_by([(name, "ascending") for name in rows.column_names])
