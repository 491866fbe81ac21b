"""An engine reads the demo's table, in a process of its own.

    python -m windrow_demo.engine_sides ENGINE WAY URL FOLDER WORK

reads the rows of one day, then all of them, each time with what an engine does to open the table.
WAY is `folder`, `windrow`, or `packed` for the same by packs. The rows are written to files in WORK, and the seconds printed as JSON.
"""

from __future__ import annotations

import glob
import json
import logging
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa

from windrow_demo.measuring import timed

TABLE = "demo.flights"
FOLDER, WINDROW, PACKED = "folder", "windrow", "packed"
ONE_DAY, ALL_ROWS = "day", "all"
QUESTIONS = (ONE_DAY, ALL_ROWS)
# The first day is in the table, however few days it has.
_DAY = "month = 1 AND day = 1"

# Reads the rows that a condition is true for, or all.
Read = Callable[[str | None], pa.Table]


@contextmanager
def _duckdb(way: str, url: str, folder: Path, work: Path) -> Iterator[Read]:
    duckdb: Any = import_module("duckdb")
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    if way != FOLDER:
        for name in ("httpfs", "avro", "iceberg"):
            connection.execute(f"LOAD '{_extension(name)}'")
        connection.execute(
            f"ATTACH '' AS w (TYPE iceberg, ENDPOINT '{url}/iceberg', AUTHORIZATION_TYPE 'none')"
        )
        rows = f"w.{TABLE}"
    else:
        rows = f"read_parquet('{folder}/**/*.parquet', hive_partitioning = true)"
    yield lambda condition: connection.execute(
        f"FROM {rows} WHERE {condition or 'true'}"
    ).fetch_arrow_table()


def _extension(name: str) -> str:
    """Return the file of an extension from its package; without one, DuckDB looks for it itself."""
    package = find_spec(f"duckdb_extension_{name}")
    folders = [] if package is None else package.submodule_search_locations or []
    files = [
        file
        for where in folders
        for file in glob.glob(f"{where}/**/*.duckdb_extension", recursive=True)
    ]
    return files[0] if files else name


@contextmanager
def _polars(way: str, url: str, folder: Path, work: Path) -> Iterator[Read]:
    pl: Any = import_module("polars")
    _import_pyiceberg()

    def read(condition: str | None) -> pa.Table:
        if way != FOLDER:
            rows = pl.scan_iceberg(_catalog(url).load_table(TABLE))
        else:
            rows = pl.scan_parquet(f"{folder}/**/*.parquet", hive_partitioning=True)
        return (
            (rows if condition is None else rows.filter(pl.sql_expr(condition)))
            .collect()
            .to_arrow()
        )

    yield read


@contextmanager
def _pyiceberg(way: str, url: str, folder: Path, work: Path) -> Iterator[Read]:
    import pyarrow.compute as pc
    import pyarrow.dataset as ds

    _import_pyiceberg()

    def read(condition: str | None) -> pa.Table:
        if way != FOLDER:
            table = _catalog(url).load_table(TABLE)
            return (table.scan() if condition is None else table.scan(condition)).to_arrow()
        # It cannot read a folder; what it reads files with can.
        rows = ds.dataset(str(folder), format="parquet", partitioning="hive")
        new_year = (pc.field("month") == 1) & (pc.field("day") == 1)
        return rows.to_table(filter=None if condition is None else new_year)

    yield read


def _catalog(url: str) -> Any:
    rest: Any = import_module("pyiceberg.catalog.rest")
    return rest.RestCatalog("w", uri=f"{url}/iceberg")


def _import_pyiceberg() -> None:
    """Import what it would import with the first read, so that it is not part of its time."""
    for name in ("catalog.rest", "expressions.parser", "io.pyarrow", "table"):
        import_module(f"pyiceberg.{name}")


@contextmanager
def _spark(way: str, url: str, folder: Path, work: Path) -> Iterator[Read]:
    from windrow.connecting import connect
    from windrow_demo.local_session import local_session

    with local_session("windrow_demo engines", work / "spark.log") as spark, connect(url) as client:

        def read(condition: str | None) -> pa.Table:
            rows = client.read(spark, TABLE) if way != FOLDER else spark.read.parquet(str(folder))
            return (rows if condition is None else rows.where(condition)).toArrow()

        # Its first job also starts its threads.
        spark.range(10).toArrow()
        yield read


ENGINES = {"duckdb": _duckdb, "polars": _polars, "pyiceberg": _pyiceberg, "spark": _spark}
TITLES = {"duckdb": "DuckDB", "polars": "Polars", "pyiceberg": "PyIceberg", "spark": "Spark"}
# Spark reads the table's own files by Windrow, whether there are packs or not.
PACKABLE = [name for name in ENGINES if name != "spark"]
PACKAGES = {name: name for name in ENGINES} | {"spark": "pyspark"}


def main() -> None:
    """Read with one engine, in one way."""
    engine, way, url, folder, work = sys.argv[1:]
    warnings.simplefilter("ignore")
    # It says for each table that it finds columns by their names.
    logging.disable(logging.WARNING)
    seconds = {}
    with ENGINES[engine](way, url, Path(folder), Path(work)) as read:
        for question, condition in zip(QUESTIONS, (_DAY, None), strict=True):
            rows, seconds[question] = timed(partial(read, condition))
            with (
                pa.OSFile(f"{work}/{question}.arrow", "wb") as file,
                pa.ipc.new_file(file, rows.schema) as writer,
            ):
                writer.write_table(rows)
    print(json.dumps({"version": version(PACKAGES[engine]), "seconds": seconds}))  # noqa: T201


if __name__ == "__main__":
    main()
