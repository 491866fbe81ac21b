"""Statements that write rows to a partitioned table, at random."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hypothesis import strategies as st
from pyspark.sql import SparkSession

# Values of the partition column `p`, by its type.
VALUES = {
    "string": ["a", "b=c", "d/e", "f%20g", "h i", "é", "O'N", "", None],
    "int": ["1", "-7", None],
    "date": ["2026-11-01", "0001-01-01", None],
}


@dataclass(frozen=True)
class Statement:
    """One statement; its rows have the values at some places among those of the column.

    Attributes:
        kind: What it does. `partition` overwrites that of the first value.
        values: Places of the values of its rows.
        of_itself: Whether its rows are read from the table.
        by_catalog: Whether it names the table in the catalog, or a view.
    """

    kind: Literal["append", "by name", "overwrite", "partition", "dynamic"]
    values: tuple[int, ...]
    of_itself: bool
    by_catalog: bool


statements = st.builds(
    Statement,
    kind=st.sampled_from(["append", "by name", "overwrite", "partition", "dynamic"]),
    values=st.lists(st.integers(0, 8), max_size=4).map(tuple),
    of_itself=st.booleans(),
    by_catalog=st.booleans(),
)


def value_of(statement: Statement, type_: str) -> str | None:
    """Return the value of a statement's first row, which `partition` names."""
    values = VALUES[type_]
    return values[(statement.values[0] if statement.values else 0) % len(values)]


def quoted(value: str | None) -> str:
    """Return a value as SQL writes it."""
    return "null" if value is None else "'" + value.replace("'", "\\'") + "'"


def text_of(statement: Statement, type_: str, first_id: int) -> str:
    """Return the statement in SQL, with the table for `{t}`, and for `{s}` where it is read."""
    values = VALUES[type_]
    value = quoted(value_of(statement, type_))
    part = statement.kind == "partition"
    if statement.of_itself:
        rows = f"SELECT id + 1000 AS id{'' if part else ', p'} FROM {{s}} WHERE id % 2 = 0"
    elif statement.values:
        rows = " UNION ALL ".join(
            f"SELECT {first_id + nth}L AS id"
            + ("" if part else f", CAST({quoted(values[place % len(values)])} AS {type_}) AS p")
            for nth, place in enumerate(statement.values)
        )
    else:
        rows = f"SELECT 1L AS id{'' if part else f', CAST({value} AS {type_}) AS p'} WHERE false"
    if statement.kind == "by name":
        return f"INSERT INTO {{t}} BY NAME SELECT p, id FROM ({rows})"
    verb = "INSERT INTO" if statement.kind == "append" else "INSERT OVERWRITE"
    return f"{verb} {{t}} {f'PARTITION (p = {value}) ' if part else ''}{rows}"


def rows_of(spark: SparkSession, table: str) -> list[str]:
    """Return the rows of a table, sorted."""
    return sorted(map(str, spark.sql(f"SELECT id, CAST(p AS STRING) FROM {table}").collect()))
