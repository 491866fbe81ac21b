"""The tables of TPC-DS or TPC-H as Parquet, made by DuckDB's generators.

`python -m tests.programs.tpc_tables BENCHMARK FOLDER` makes them: those of sales and returns, and of
lines of orders, with a partition for each so many of their days, all others as a few small files.
"""

from __future__ import annotations

import sys
from pathlib import Path

import duckdb

_SCALE = {"tpcds": 0.01, "tpch": 0.01}
_BY_DAY = {
    "store_sales": "ss_sold_date_sk",
    "catalog_sales": "cs_sold_date_sk",
    "web_sales": "ws_sold_date_sk",
    "store_returns": "sr_returned_date_sk",
    "inventory": "inv_date_sk",
    "lineitem": "l_shipdate",
}
# Columns that Spark's texts of the queries call by the names of an earlier edition.
_NAMES = {"customer": "RENAME (c_last_review_date_sk AS c_last_review_date)"}
# With rows of every day, there would be 15,000 files.
_EVERY = 6
_FILES = 4


def make(benchmark: str, folder: Path) -> None:
    """Make the tables of a benchmark, each in a folder of its name."""
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    packages = Path(duckdb.__file__).parents[1] / f"duckdb_extension_{benchmark}"
    (extension,) = packages.rglob("*.duckdb_extension")
    connection.sql(f"LOAD '{extension}'")
    generator = {"tpcds": "dsdgen", "tpch": "dbgen"}[benchmark]
    connection.sql(f"CALL {generator}(sf={_SCALE[benchmark]})")
    for (table,) in connection.sql("SHOW TABLES").fetchall():
        target = folder / table
        target.mkdir(parents=True)
        day = _BY_DAY.get(table)
        if day is not None:
            days = f"SELECT {day} FROM {table} GROUP BY 1 QUALIFY row_number() OVER (ORDER BY 1) % {_EVERY} = 0"
            rows = f"SELECT * FROM {table} WHERE {day} IN ({days}) OR {day} IS NULL"
            connection.sql(f"COPY ({rows}) TO '{target}' (FORMAT parquet, PARTITION_BY {day})")
            continue
        for number in range(_FILES):
            columns = f"* {_NAMES.get(table, '')}"
            rows = f"SELECT {columns} FROM {table} WHERE rowid % {_FILES} = {number}"
            connection.sql(f"COPY ({rows}) TO '{target}/{number}.parquet' (FORMAT parquet)")


if __name__ == "__main__":
    make(sys.argv[1], Path(sys.argv[2]))
