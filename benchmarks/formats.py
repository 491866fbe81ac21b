"""Read tables in formats other than Parquet: Spark's own reader alone, and with Windrow.

    python benchmarks/formats.py [--quick] [--json FILE] [--cases NAME,…]

One session for all sides, one untimed round, then timed rounds in turns. Spark's figures exclude its
listing, since its DataFrame is made once; Windrow's include planning.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.csv
import pyarrow.orc as orc
from common import Result, arguments, console, selected, times_table, write_json
from peers import normal, queries
from sessions import spark_and_client
from tables import KIB, rows_of

from windrow.client import Client
from windrow_calls.terminal.consoles import show
from windrow_calls.terminal.java import require_java
from windrow_demo.measuring import time_in_turns, timed
from windrow_demo.sides import SPARK_DEFAULT, SPARK_TUNED, WINDROW, sides
from windrow_demo.write_once import write_once

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "formats"
PEERS = (SPARK_DEFAULT, SPARK_TUNED)
COLUMNS = {
    "id": "bigint",
    "region": "int",
    "customer": "string",
    "amount": "bigint",
    "score": "float",
}
_FILES_PER_FOLDER = 100


def _write_csv(rows: pa.Table, path: Path) -> None:
    pyarrow.csv.write_csv(rows, path)


def _write_json(rows: pa.Table, path: Path) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows.to_pylist()))


def _write_orc(rows: pa.Table, path: Path) -> None:
    orc.write_table(rows, path, compression="zlib")


@dataclass(frozen=True, slots=True)
class Case:
    """A table to write and read.

    Attributes:
        name: Name for programs.
        format: Format of the files.
        files: Number of files.
        file_bytes: Approximate size of a file.
        row_bytes: Approximate size of a row in this format.
        write: Function that writes one file.
        options: Spark's options for reading the files.
    """

    name: str
    format: str
    files: int
    file_bytes: int
    row_bytes: int
    write: Callable[[pa.Table, Path], None]
    options: Mapping[str, str]

    def written(self, data: Path) -> Path:
        """Return the table's folder, after writing it once."""
        rows = self.file_bytes // self.row_bytes
        folder = data / f"{self.name}-{self.files}x{self.file_bytes}"

        def write(to: Path) -> None:
            for number in range(self.files):
                where = to / f"day={number // _FILES_PER_FOLDER}"
                where.mkdir(parents=True, exist_ok=True)
                self.write(rows_of(number, number * rows, rows), where / f"part-{number:06d}")

        # `write_once` counts only Parquet files.
        write_once(folder, {"layout": 1, "rows": rows * self.files}, write, file_count=0)
        return folder


CASES = (
    Case("orc", "orc", 10_000, 16 * KIB, 12, _write_orc, {}),
    Case("csv", "csv", 2_000, 64 * KIB, 42, _write_csv, {"header": "true"}),
    Case("json", "json", 2_000, 64 * KIB, 93, _write_json, {}),
)
QUICK_CASES = (
    Case("orc", "orc", 6, 4 * KIB, 12, _write_orc, {}),
    Case("csv", "csv", 6, 4 * KIB, 42, _write_csv, {"header": "true"}),
    Case("json", "json", 6, 4 * KIB, 93, _write_json, {}),
)


class DisagreementError(Exception):
    """Two sides gave different answers, so their figures are meaningless."""


def main() -> None:
    """Run the benchmark."""
    parser = arguments("Read tables in formats other than Parquet with Spark, and with Windrow.")
    parser.add_argument("--cases", help="names of the cases to run, separated by ','")
    options = parser.parse_args()
    require_java()
    cases = selected(QUICK_CASES if options.quick else CASES, options.cases)
    data = options.data.resolve()
    work = data / "work"
    results: list[Result] = []
    with spark_and_client(data, work) as (spark, client):
        for case in cases:
            runs = 1 if options.quick else options.runs
            results += _measured(spark, client, case, data, runs, warm=not options.quick)
    show(times_table(results))
    if options.json is not None:
        write_json(options.json, NAME, results, quick=options.quick, runs=options.runs)


def _measured(
    spark: SparkSession, client: Client, case: Case, data: Path, runs: int, *, warm: bool
) -> list[Result]:
    folder, table = case.written(data), f"bench.{case.name}"
    title = f"{case.files:,} files of {case.format}, {case.file_bytes // KIB:,} KB"
    console.print(title, style="dim")
    client.register_table(
        table, str(folder), case.format, columns=COLUMNS, format_options=case.options
    )
    _, refresh_s = timed(partial(client.refresh, table))
    schema = ", ".join(f"{name} {type_}" for name, type_ in COLUMNS.items())
    reader = spark.read.format(case.format).schema(schema).options(**case.options)
    listed, listing_s = timed(partial(reader.load, str(folder)))
    all_queries = queries()
    timings = time_in_turns(
        spark,
        sides(listed, client, table),
        all_queries,
        runs=runs,
        on_run=lambda *_: None,
        warm=warm,
    )
    results = [Result.in_seconds(title, "know the files", refresh_s, SPARK_DEFAULT, listing_s)]
    for query in all_queries:
        of = {timing.side: timing for timing in timings if timing.query == query.name}
        answers = {repr(normal(timing.answer)) for timing in of.values()}
        if len(answers) != 1:
            raise DisagreementError(f"{title}, {query.title}: the sides do not agree: {answers}")
        results += [
            Result.in_seconds(
                f"{title}, {query.title}",
                "warm read",
                of[WINDROW].median_s,
                peer,
                of[peer].median_s,
            )
            for peer in PEERS
        ]
    return results


if __name__ == "__main__":
    main()
