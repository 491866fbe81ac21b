"""The tables of `star.py`: a year of events in small files, and what its queries join them with."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from common import console
from sql_turns import TableFolder

from windrow_core.files.types import spark_type
from windrow_demo.hive import folder_name
from windrow_demo.processes import run_in_processes
from windrow_demo.progress import counting
from windrow_demo.write_once import write_once

YEAR_OF_FILES = 4_380
_LAYOUT = 1
_FIRST_DAY = dt.date(2025, 1, 1)
_DAYS = 365
# A file of events of 32 KB; the other partitioned tables have smaller ones.
_ROWS, _FEW_ROWS = 1_100, 200
_REFUNDS = 100
_COUNTRIES = [f"{first}{second}" for first in "ABDEF" for second in "LRST"]
_FILES_PER_CALL = 200


@dataclass(frozen=True, slots=True)
class _File:
    """A file to write: its number, its place below the table, and its rows' day."""

    number: int
    path: str
    day: dt.date
    rows: int


_EVENT_COLUMNS = {
    "id": "bigint",
    "customer": "int",
    "country": "string",
    "amount": "double",
    "ts": "timestamp",
}


def star_tables(data: Path, files: int) -> list[TableFolder]:
    """Make sure that the tables exist under `data`, with this many files of events."""
    few = files < YEAR_OF_FILES
    days = [_FIRST_DAY + dt.timedelta(at * _DAYS // files) for at in range(files)]
    events = _partitioned(
        data / f"events-{files}", [[("ds", day)] for day in days], days, 100 if few else _ROWS
    )
    august = [dt.date(2025, 8, day) for day in range(1, 3 if few else 11)]
    hours = [(day, hour) for day in august for hour in range(24) for _ in range(1 if few else 2)]
    visits = _partitioned(
        data / f"visits-{len(hours)}",
        [[("ds", day), ("hour", f"{hour:02}")] for day, hour in hours],
        [day for day, _ in hours],
        _FEW_ROWS,
    )
    readings = _partitioned(
        data / f"readings-{len(hours)}",
        [[("at", f"{day}T{hour:02}:00:00Z")] for day, hour in hours],
        [day for day, _ in hours],
        _FEW_ROWS,
    )
    return [
        _table("events", events, {"ds": "date"}),
        _table("visits", visits, {"ds": "date", "hour": "string"}),
        _table("readings", readings, {"at": "timestamp"}),
        *(_small(data, name, rows) for name, rows in _small_tables(files).items()),
    ]


def _table(name: str, folder: Path, partition: Mapping[str, str]) -> TableFolder:
    columns = {**_EVENT_COLUMNS, **partition}
    return TableFolder(name=name, folder=folder, columns=columns, partition_columns=partition)


def _small_tables(files: int) -> Mapping[str, pa.Table]:
    days = [_FIRST_DAY + dt.timedelta(at) for at in range(_DAYS)]
    refunds = range(_REFUNDS)
    return {
        # Of events that are in other files each.
        f"refunds-{files}": pa.table(
            {
                "event": pa.array([files * number for number in refunds], pa.int64()),
                "reason": ["damaged" if number % 20 == 0 else "other" for number in refunds],
            }
        ),
        "days": pa.table(
            {
                "day": days,
                "quarter": pa.array([(day.month + 2) // 3 for day in days], pa.int32()),
                "kind": [_kind(day) for day in days],
            }
        ),
        "closures": pa.table({"day": pa.array([days[2], None, days[220]], pa.date32())}),
        "slots": pa.table(
            {
                "day": [dt.date(2025, 8, 1), dt.date(2025, 8, 2), dt.date(2025, 8, 2)],
                "hour": ["01", "01", "17"],
                "load": ["high", "low", "high"],
            }
        ),
    }


def _kind(day: dt.date) -> str:
    if day.day == 15:
        return "holiday"
    return "promotion" if day.month == 11 and day.day > 20 else "plain"


def _small(data: Path, name: str, rows: pa.Table) -> TableFolder:
    folder = data / name

    def write(to: Path) -> None:
        pq.write_table(rows, to / "part-0.parquet")

    write_once(folder, {"layout": _LAYOUT, "rows": rows.num_rows}, write, file_count=1)
    columns = {column.name: spark_type(column.type) for column in rows.schema}
    return TableFolder(name=name.partition("-")[0], folder=folder, columns=columns)


def _partitioned(
    folder: Path,
    partitions: Sequence[Sequence[tuple[str, object]]],
    days: Sequence[dt.date],
    rows: int,
) -> Path:
    """Write a file of `rows` rows into each of the partitions, unless they are there."""
    files = [
        _File(at, f"{folder_name(values)}/part-{at:05}.parquet", day, rows)
        for at, (values, day) in enumerate(zip(partitions, days, strict=True))
    ]

    def write(to: Path) -> None:
        calls = [
            (str(to), files[begin : begin + _FILES_PER_CALL])
            for begin in range(0, len(files), _FILES_PER_CALL)
        ]
        with counting(console, f"Writing {folder.name}", len(files)) as progress:
            run_in_processes(_write_files, calls, progress.advance)

    stamp = {"layout": _LAYOUT, "rows": rows * len(files)}
    write_once(folder, stamp, write, file_count=len(files))
    return folder


def _write_files(folder: str, files: Sequence[_File]) -> int:
    """Write files; runs in a worker process."""
    for file in files:
        path = Path(folder, file.path)
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(_rows(file), path)
    return len(files)


def _rows(file: _File) -> pa.Table:
    random = np.random.default_rng(file.number)
    midnight = dt.datetime.combine(file.day, dt.time(), dt.timezone.utc)
    seconds = np.sort(random.integers(0, 86_400, file.rows)) + int(midnight.timestamp())
    first_id = file.number * file.rows
    return pa.table(
        {
            "id": np.arange(first_id, first_id + file.rows, dtype=np.int64),
            "customer": random.integers(0, 5_000, file.rows).astype(np.int32),
            "country": pa.array(_COUNTRIES).take(
                pa.array(random.integers(0, len(_COUNTRIES), file.rows))
            ),
            "amount": random.random(file.rows) * 1_000,
            "ts": pa.array(seconds * 1_000_000, pa.timestamp("us", "UTC")),
        }
    )
