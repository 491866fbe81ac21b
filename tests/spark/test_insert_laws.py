"""Whatever statements write a table, it holds the rows that Spark's own writer would leave."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import Phase, given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import windrow
from tests.support.laws import examples
from windrow.spark import recent_writes

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]

COPY = "insert_law.copy"
VALUES = {
    "string": ["a", "b=c", "d/e", "f%20g", "h i", "é", "O'N", "", None],
    "int": ["1", "-7", None],
    "date": ["2026-11-01", "0001-01-01", None],
}
_MODE = "spark.sql.sources.partitionOverwriteMode"


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


def quoted(value: str | None) -> str:
    return "null" if value is None else "'" + value.replace("'", "\\'") + "'"


def text_of(statement: Statement, type_: str, first_id: int) -> str:
    """Return the statement in SQL, with the table for `{t}`, and for `{s}` where it is read."""
    values = VALUES[type_]
    at = statement.values[0] if statement.values else 0
    fixed = f"CAST({quoted(values[at % len(values)])} AS {type_})"
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
        rows = f"SELECT 1L AS id{'' if part else f', {fixed} AS p'} WHERE false"
    if statement.kind == "by name":
        return f"INSERT INTO {{t}} BY NAME SELECT p, id FROM ({rows})"
    verb = "INSERT INTO" if statement.kind == "append" else "INSERT OVERWRITE"
    value = quoted(values[at % len(values)])
    return f"{verb} {{t}} {f'PARTITION (p = {value}) ' if part else ''}{rows}"


def rows_of(spark: SparkSession, table: str) -> list[str]:
    return sorted(map(str, spark.sql(f"SELECT id, CAST(p AS STRING) FROM {table}").collect()))


# Not shrunk: each step writes two tables.
@examples(6, phases=[Phase.generate])
@given(
    type_=st.sampled_from(sorted(VALUES)),
    steps=st.lists(statements, min_size=3, max_size=6),
)
def test_rows_are_those_that_sparks_own_writer_leaves(
    spark: SparkSession,
    client: windrow.Client,
    folder: Path,
    type_: str,
    steps: list[Statement],
) -> None:
    windrow.register(spark, client)
    name = f"law_{uuid.uuid4().hex}"
    law = f"sales.{name}"
    columns = {"columns": {"id": "bigint"}, "partition_columns": {"p": type_}}
    client.register_table(law, str(folder / name), **columns)
    client.write(spark.sql(f"SELECT 0L AS id, CAST(null AS {type_}) AS p"), law)
    client.read(spark, law).createOrReplaceTempView("law")
    spark.sql("CREATE DATABASE insert_law")
    try:
        spark.sql(
            f"CREATE TABLE {COPY} USING parquet PARTITIONED BY (p) "
            f"AS SELECT 0L AS id, CAST(null AS {type_}) AS p"
        )
        for nth, step in enumerate(steps):
            text = text_of(step, type_, 10 * (nth + 1))
            table = f"windrow.{law}" if step.by_catalog else "law"
            spark.conf.set(_MODE, "dynamic" if step.kind == "dynamic" else "static")
            spark.sql(text.format(t=table, s=table))
            # Spark itself cannot overwrite what it reads.
            spark.table(COPY).localCheckpoint().createOrReplaceTempView("law_source")
            spark.sql(text.format(t=COPY, s="law_source"))

            assert rows_of(spark, f"windrow.{law}") == rows_of(spark, COPY), text
            keys = recent_writes(law)[0].report.keys
            if keys is not None and keys.planned_files is not None:
                for files, planned in zip(keys.files, keys.planned_files, strict=True):
                    assert files <= planned + 1
            # Statements by the catalog leave views as they are.
            client.read(spark, law).createOrReplaceTempView("law")
    finally:
        spark.conf.unset(_MODE)
        spark.sql("DROP DATABASE insert_law CASCADE")
        spark.catalog.dropTempView("law")
        spark.catalog.dropTempView("law_source")
