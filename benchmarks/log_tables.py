"""Tables that keep a log: read through Windrow, by their own packages, and by DuckDB.

    python benchmarks/log_tables.py [--quick] [--json FILE] [--cases NAME,…]

One untimed round, then timed rounds in turns, in one session. Rows that the formats' packages read
become a DataFrame, as in a job without another reader. DuckDB's extensions are not Python packages,
so it is given the files that the log names. The last case refreshes after commits of ten files.
"""

from __future__ import annotations

import json
import shutil
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from common import Result, arguments, console, selected, times_table, write_json
from deltalake import DeltaTable, Field, Schema, convert_to_deltalake
from deltalake.schema import PrimitiveType
from peers import Rows, normal
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import StaticTable
from sessions import spark_and_client
from tables import KIB, rows_of

from windrow.client import Client
from windrow_calls.terminal.consoles import show
from windrow_calls.terminal.java import require_java
from windrow_demo.measuring import timed
from windrow_demo.write_once import write_once

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAME = "log_tables"
_ASKED = ["amount", "score"]
_ROW_BYTES = 22
_FILES_PER_FOLDER = 100
_FILES_PER_COMMIT = 10_000


@dataclass(frozen=True, slots=True)
class Format:
    """How tables of one format are written, and read without Windrow.

    Attributes:
        name: Windrow's name of the format.
        package: Name of its Python package.
        write: Writes a log beside the files of a folder.
        to_arrow: Reads columns of a table, opening it first.
        files: Returns the paths of a table's files.
    """

    name: str
    package: str
    write: Callable[[Path], None]
    to_arrow: Callable[[Path, list[str]], pa.Table]
    files: Callable[[Path], list[str]]


def _write_delta(folder: Path) -> None:
    convert_to_deltalake(
        folder,
        partition_by=Schema([Field("day", PrimitiveType("integer"))]),
        partition_strategy="hive",
    )


def _write_iceberg(folder: Path) -> None:
    catalog = SqlCatalog("bench", uri=f"sqlite:///{folder}/catalog.db")
    catalog.create_namespace("bench")
    files = [f"file://{path}" for path in sorted(folder.rglob("*.parquet"))]
    schema = pq.read_schema(files[0].removeprefix("file://"))
    table = catalog.create_table("bench.table", schema, location=f"file://{folder}")
    table.add_files(files)


def _iceberg(folder: Path) -> StaticTable:
    return StaticTable.from_metadata(str(max(folder.glob("metadata/*.metadata.json"))))


def _iceberg_to_arrow(folder: Path, columns: list[str]) -> pa.Table:
    return _iceberg(folder).scan(selected_fields=tuple(columns)).to_arrow()


def _iceberg_files(folder: Path) -> list[str]:
    tasks = _iceberg(folder).scan().plan_files()
    return [task.file.file_path.removeprefix("file://") for task in tasks]


FORMATS = (
    Format(
        name="delta",
        package="deltalake",
        write=_write_delta,
        to_arrow=lambda folder, columns: DeltaTable(folder).to_pyarrow_table(columns=columns),
        files=lambda folder: DeltaTable(folder).file_uris(),
    ),
    Format(
        name="iceberg",
        package="pyiceberg",
        write=_write_iceberg,
        to_arrow=_iceberg_to_arrow,
        files=_iceberg_files,
    ),
)


class DisagreementError(Exception):
    """Two sides gave different answers, so their figures are meaningless."""


def main() -> None:
    """Run the benchmark."""
    parser = arguments("Read tables that keep a log with Windrow, and with their own packages.")
    parser.add_argument("--cases", help="names of the formats to run, separated by ','")
    options = parser.parse_args()
    require_java()
    formats = selected(FORMATS, options.cases)
    files, followed, runs = (20, 100, 1) if options.quick else (10_000, 100_000, options.runs)
    data = options.data.resolve()
    work = data / "work"
    results: list[Result] = []
    with spark_and_client(data, work) as (spark, client):
        for one in formats:
            results += _read(spark, client, one, files, data, runs, warm=not options.quick)
        if any(one.name == "delta" for one in formats):
            results.append(_followed(client, followed, data, runs, warm=not options.quick))
    show(times_table(results))
    if options.json is not None:
        write_json(options.json, NAME, results, quick=options.quick, runs=runs)


def _read(
    spark: SparkSession,
    client: Client,
    one: Format,
    files: int,
    data: Path,
    runs: int,
    *,
    warm: bool,
) -> list[Result]:
    folder, table = _written(one, files, data), f"bench.{one.name}"
    title = f"{files:,} files of {one.name}, 16 KB"
    console.print(title, style="dim")
    client.register_table(table, str(folder), one.name)
    client.refresh(table)
    sides: dict[str, Callable[[], Rows]] = {
        "windrow": lambda: _asked(client.read(spark, table)),
        one.package: lambda: _asked(spark.createDataFrame(one.to_arrow(folder, _ASKED))),
        "duckdb": lambda: _asked_of_duckdb(one.files(folder)),
    }
    seconds: dict[str, list[float]] = {side: [] for side in sides}
    for turn in range(runs + warm):
        answers = {}
        for side, ask in sides.items():
            answers[side], took_s = timed(ask)
            if turn >= warm:
                seconds[side].append(took_s)
        if len(set(map(repr, answers.values()))) != 1:
            raise DisagreementError(f"{title}: the sides do not agree: {answers}")
    median = {side: statistics.median(each) for side, each in seconds.items()}
    return [
        Result.in_seconds(title, "warm read", median["windrow"], peer, median[peer])
        for peer in (one.package, "duckdb")
    ]


def _asked(frame: DataFrame) -> Rows:
    from pyspark.sql import functions as F

    rows = frame.agg(F.count(F.lit(1)), F.sum("amount"), F.max("score")).collect()
    return normal([tuple(row) for row in rows])


def _asked_of_duckdb(files: Sequence[str]) -> Rows:
    with duckdb.connect() as connection:
        sql = "SELECT count(*), sum(amount), max(score) FROM read_parquet(?)"
        return normal(connection.execute(sql, [list(files)]).fetchall())


def _written(one: Format, files: int, data: Path) -> Path:
    folder, rows = data / f"{one.name}-{files}x{16 * KIB}", 16 * KIB // _ROW_BYTES

    def write(to: Path) -> None:
        for number in range(files):
            where = to / f"day={number // _FILES_PER_FOLDER}"
            where.mkdir(parents=True, exist_ok=True)
            pq.write_table(
                rows_of(number, number * rows, rows), where / f"part-{number:06d}.parquet"
            )
        one.write(to)

    write_once(folder, {"layout": 1, "rows": rows * files}, write, file_count=0)
    return folder


def _followed(client: Client, files: int, data: Path, runs: int, *, warm: bool) -> Result:
    """Compare refreshes after commits of ten files with opening the table by `deltalake`."""
    folder = data / f"followed-{files}"
    shutil.rmtree(folder, ignore_errors=True)
    log = folder / "_delta_log"
    log.mkdir(parents=True)
    versions, numbers = count(), count()
    schema = {
        "type": "struct",
        "fields": [{"name": "id", "type": "long", "nullable": True, "metadata": {}}],
    }
    head = [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {
            "metaData": {
                "id": "0",
                "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps(schema),
                "partitionColumns": [],
                "configuration": {},
                "createdTime": 0,
            }
        },
    ]

    def commit(added: int, first: Sequence[object] = ()) -> None:
        lines = [*first, *(_added(next(numbers)) for _ in range(added))]
        path = log / f"{next(versions):020}.json"
        path.write_text("\n".join(json.dumps(line) for line in lines))

    commit(0, head)
    for _ in range(-(-files // _FILES_PER_COMMIT)):
        commit(min(files, _FILES_PER_COMMIT))
    DeltaTable(folder).create_checkpoint()
    client.register_table("bench.followed", str(folder), "delta")
    client.refresh("bench.followed")
    ours, theirs = [], []
    for _ in range(runs + warm):
        commit(10)
        ours.append(timed(partial(client.refresh, "bench.followed"))[1])
        theirs.append(timed(lambda: len(DeltaTable(folder).file_uris()))[1])
    # The first ones start processes.
    medians = (statistics.median(seconds[warm:]) for seconds in (ours, theirs))
    mine, other = medians
    return Result.in_seconds(
        f"{files:,} files of delta, ten more", "refresh", mine, "deltalake", other
    )


def _added(number: int) -> object:
    stats = {
        "numRecords": 10,
        "minValues": {"id": number},
        "maxValues": {"id": number + 9},
        "nullCount": {"id": 0},
    }
    return {
        "add": {
            "path": f"part-{number * 7919 % 1_000_003:07}.parquet",
            "partitionValues": {},
            "size": 16 * KIB,
            "modificationTime": 1_700_000_000_000,
            "dataChange": True,
            "stats": json.dumps(stats),
        }
    }


if __name__ == "__main__":
    main()
