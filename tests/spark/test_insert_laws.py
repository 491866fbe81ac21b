"""Whatever statements write a table, it holds the rows that Spark's own writer would leave."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest
from hypothesis import Phase, given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import windrow
from tests.support.laws import examples
from tests.support.queries.random_statements import VALUES, Statement, rows_of, statements, text_of
from windrow.spark import recent_writes

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]

COPY = "insert_law.copy"
_MODE = "spark.sql.sources.partitionOverwriteMode"


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
