"""Tables and queries like those of TPC-H and TPC-DS, by DuckDB's extensions, in small files.

The extensions are wheels of the extra `benchmark`. What they generate is written once; afterwards,
any Python can read it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import sqlglot
from common import console
from duckdb_extensions import NoExtensionError, load_extension
from sql_turns import SqlQuery, TableFolder

from windrow_core.files.types import spark_type
from windrow_demo.hive import write_hive_table
from windrow_demo.write_once import write_once

if TYPE_CHECKING:
    import pyarrow as pa
    from duckdb import DuckDBPyConnection

_LAYOUT = 2
_TABLES, _QUERIES = "tables.json", "queries.json"


class NoGeneratorError(Exception):
    """DuckDB's extension is not installed, or does not fit the installed DuckDB."""

    def __init__(self, extension: str, reason: str) -> None:
        super().__init__(
            f"DuckDB cannot load its extension {extension} ({reason}): "
            "pip install '.[benchmark]', which installs the DuckDB that it fits"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TpcSet:
    """A set of tables and queries.

    Attributes:
        name: Name of the set, and of DuckDB's extension.
        prefix: First part of the names of its queries, before their numbers.
        generate: Generates the tables, for a scale factor.
        partitions: Tables in folders, and the column by which.
        files: Tables without folders, and their number of files; the others have one.
        queries: Numbers of the queries to run; all if empty.
    """

    name: str
    prefix: str
    generate: str
    partitions: Mapping[str, str]
    files: Mapping[str, int]
    queries: tuple[int, ...] = ()


TPCH = TpcSet(
    name="tpch",
    prefix="h",
    generate="CALL dbgen(sf = {})",
    partitions={"lineitem": "l_shipdate"},
    files={"orders": 200, "partsupp": 100},
)
TPCDS = TpcSet(
    name="tpcds",
    prefix="ds",
    generate="CALL dsdgen(sf = {})",
    partitions={
        "store_sales": "ss_sold_date_sk",
        "catalog_sales": "cs_sold_date_sk",
        "inventory": "inv_date_sk",
    },
    files={"web_sales": 200, "store_returns": 200, "catalog_returns": 100, "web_returns": 100},
    # Those that name days, channels and dimensions in many ways; some of the others find no row in
    # so little data.
    queries=(
        *(3, 7, 12, 15, 19, 21, 26, 27, 28, 32, 33, 34, 36, 38, 40, 42, 43, 45, 46, 48, 50, 53, 55),
        *(59, 60, 61, 68, 69, 70, 71, 76, 79, 86, 89, 90, 92, 96, 97, 98, 99),
    ),
)


def written(data: Path, tpc: TpcSet, scale: float, most_partitions: int | None = None) -> Path:
    """Make sure that a set's tables and queries exist, and return their folder.

    Args:
        data: Folder of all sets.
        tpc: The set.
        scale: Its scale factor, about the size in GB.
        most_partitions: The number of each table's partitions to write; all if None.

    Raises:
        NoGeneratorError: They do not exist, and DuckDB cannot generate them.
    """
    size = f"{scale:g}" if most_partitions is None else f"{scale:g}-{most_partitions}"
    folder = data / f"{tpc.name}-{size}"

    def write(to: Path) -> None:
        console.print(f"Writing {folder.name}", style="dim")
        with _generator(tpc.name) as connection:
            connection.execute(tpc.generate.format(scale))
            names = [name for (name,) in connection.execute("SHOW TABLES").fetchall()]
            tables = {name: _write(connection, to, tpc, name, most_partitions) for name in names}
            texts = connection.execute(f"FROM {tpc.name}_queries()").fetchall()
        queries = {f"{tpc.prefix}{number}": _for_spark(text) for number, text, *_ in texts}
        (to / _TABLES).write_text(json.dumps(tables))
        (to / _QUERIES).write_text(json.dumps(queries))

    write_once(folder, {"layout": _LAYOUT}, write, file_count=None)
    return folder


def tables_of(folder: Path) -> list[TableFolder]:
    """Return the tables of a set that is written."""
    tables: Mapping[str, tuple[dict[str, str], list[str]]] = json.loads(
        (folder / _TABLES).read_text()
    )
    return [
        TableFolder(
            name=name,
            folder=folder / name,
            columns=columns,
            partition_columns={column: columns[column] for column in partition},
        )
        for name, (columns, partition) in tables.items()
    ]


def queries_of(folder: Path, tpc: TpcSet) -> list[SqlQuery]:
    """Return the queries of a set that is written."""
    texts: Mapping[str, str] = json.loads((folder / _QUERIES).read_text())
    names = [f"{tpc.prefix}{number}" for number in tpc.queries] or list(texts)
    return [SqlQuery(name, texts[name]) for name in names]


@contextmanager
def _generator(extension: str) -> Iterator[DuckDBPyConnection]:
    import duckdb

    with duckdb.connect() as connection:
        try:
            load_extension(connection, extension)
        except NoExtensionError as error:
            raise NoGeneratorError(extension, str(error)) from error
        yield connection


def _write(
    connection: DuckDBPyConnection, to: Path, tpc: TpcSet, name: str, most_partitions: int | None
) -> tuple[dict[str, str], list[str]]:
    """Write a table; return its columns with their types, and the columns of its folders."""
    folder = to / name
    folder.mkdir()
    column = tpc.partitions.get(name)
    if column is None:
        rows = connection.execute(f"FROM {name}").to_arrow_table()
        _write_files(folder, rows, tpc.files.get(name, 1) if most_partitions is None else 1)
        return _types(rows), []
    some = "" if most_partitions is None else f"WHERE {_some_keys(name, column, most_partitions)}"
    rows = connection.execute(
        f"SELECT * EXCLUDE ({column}), {column} FROM {name} {some} ORDER BY {column}"
    ).to_arrow_table()
    write_hive_table(folder, rows, [column], lambda _: None)
    return _types(rows), [column]


def _some_keys(table: str, column: str, count: int) -> str:
    """Return the condition for about this many keys, spread over all."""
    return (
        f"{column} IN (SELECT key FROM (SELECT {column} AS key, ntile({count}) OVER (ORDER BY "
        f"{column}) AS part FROM (SELECT DISTINCT {column} FROM {table})) "
        "QUALIFY row_number() OVER (PARTITION BY part ORDER BY key) = 1)"
    )


def _write_files(folder: Path, rows: pa.Table, count: int) -> None:
    for at in range(count):
        begin, end = (rows.num_rows * edge // count for edge in (at, at + 1))
        pq.write_table(rows.slice(begin, end - begin), folder / f"part-{at:03}.parquet")


def _types(rows: pa.Table) -> dict[str, str]:
    return {column.name: spark_type(column.type) for column in rows.schema}


def _for_spark(text: str) -> str:
    """Return a query as Spark writes it, with all of its rows.

    Many are ordered by columns with equal values, so that any of several rows may be the hundredth.
    """
    tree = sqlglot.parse_one(text, read="duckdb")
    tree.set("limit", None)
    return tree.sql(dialect="spark")
