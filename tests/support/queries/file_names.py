"""Queries for the files of rows, asked of a table in each way and of Spark's own reader."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import windrow
from windrow_spark.relation.division import Reader

READERS: tuple[Reader, ...] = ("auto", "grouped", "native")

# Characters that some writers of URIs escape and others do not.
_FOLDERS = ("k=a b,é+&", "k=50%25(1)", "k=a%2Fb~'!@$", "k=plain")
_FILES = ("part-0.parquet", "two words%;[1]é=+.parquet")

# `{t}` is the table; `d` has its values of `k`, and is not read from files.
QUERIES = {
    "select": "SELECT input_file_name() f, * FROM {t}",
    "only the name": "SELECT input_file_name() f FROM {t}",
    "blocks": "SELECT id, input_file_block_start(), input_file_block_length() FROM {t}",
    "where": "SELECT * FROM {t} WHERE input_file_name() LIKE '%part-0%'",
    "where block": "SELECT input_file_block_start(), count(*) FROM {t} "
    "WHERE input_file_block_length() > 9 GROUP BY 1",
    "where equal": "SELECT count(*) FROM {t} WHERE input_file_name() != ''",
    "with pruning": "SELECT id, input_file_name() FROM {t} WHERE k = 'plain' AND id > 0",
    "nothing left": "SELECT input_file_name(), id FROM {t} WHERE k = 'absent'",
    "nothing counted": "SELECT count(f) FROM (SELECT *, input_file_name() f FROM {t}) "
    "WHERE k = 'absent'",
    "group": "SELECT input_file_name() f, count(*), sum(id) FROM {t} GROUP BY 1",
    "distinct": "SELECT count(DISTINCT f) FROM (SELECT *, input_file_name() f FROM {t})",
    "in an aggregate": "SELECT k, max(upper(f)) FROM (SELECT *, input_file_name() f FROM {t}) "
    "GROUP BY k",
    "above a group": "SELECT input_file_name(), k, n FROM (SELECT k, count(*) n FROM {t} "
    "GROUP BY k)",
    "above a sort": "SELECT id, input_file_name() FROM (SELECT * FROM {t} ORDER BY id)",
    "order": "SELECT id FROM {t} ORDER BY input_file_name(), id",
    "derived table": "SELECT f, id FROM (SELECT *, input_file_name() f FROM {t}) "
    "WHERE f LIKE '%0%'",
    "join": "SELECT /*+ BROADCAST(d) */ d.n, id, input_file_name() FROM {t} JOIN d ON d.k = {t}.k",
    "join below": "SELECT a.f, b.id FROM (SELECT id, input_file_name() f FROM {t}) a "
    "JOIN {t} b ON a.id = b.id",
    "in a subquery": "SELECT id FROM {t} WHERE id IN "
    "(SELECT id FROM {t} WHERE input_file_name() LIKE '%part-0%')",
    "above a subquery": "SELECT id, input_file_name() FROM {t} WHERE k IN (SELECT k FROM d)",
    "scalar": "SELECT id FROM {t} WHERE id > (SELECT count(DISTINCT f) FROM "
    "(SELECT *, input_file_name() f FROM {t}))",
    "exists": "SELECT id FROM {t} a WHERE EXISTS (SELECT 1 FROM (SELECT id, input_file_name() f "
    "FROM {t}) b WHERE a.id = b.id AND b.f LIKE '%part-0%')",
    "union": "SELECT input_file_name(), id FROM (SELECT * FROM {t} UNION ALL SELECT * FROM {t})",
    "expressions": "SELECT WITH_F.f FROM (SELECT element_at(split(input_file_name(), '/'), -1) f "
    "FROM {t}) WITH_F",
    "common table twice": "WITH c AS (SELECT id, rand() r, input_file_name() f FROM {t}) "
    "SELECT a.f, b.id FROM c a JOIN c b ON a.id = b.id",
    "window": "SELECT id, row_number() OVER (PARTITION BY f ORDER BY id) FROM "
    "(SELECT id, input_file_name() f FROM {t})",
}

# Those of each test run; the others are asked nightly.
_QUICK = (
    "select",
    "blocks",
    "where",
    "nothing left",
    "group",
    "join",
    "in a subquery",
    "above a subquery",
    "union",
)

_OF_EVERY_READER = ("select", "blocks")

_CONSTANTS = (
    "_metadata.file_path",
    "_metadata.file_name",
    "_metadata.file_size",
    "_metadata.file_block_start",
    "_metadata.file_block_length",
    "_metadata.file_modification_time",
)

# Views have no `_metadata`, in Spark either.
_OF_METADATA: dict[str, Callable[[DataFrame], DataFrame]] = {
    "constants": lambda rows: rows.select("id", *_CONSTANTS, "k"),
    "whole": lambda rows: rows.select("_metadata", "id"),
    "numbers of rows": lambda rows: rows.where("_metadata.row_index > 0").select("id", "k"),
    "where": lambda rows: rows.where(
        "_metadata.file_name LIKE '%part%' AND _metadata.file_size > 9 AND id > 3"
    ).select("k"),
    "beside a name": lambda rows: rows.select("_metadata.file_path", F.input_file_name()),
    "grouped": lambda rows: rows.groupBy("_metadata.file_name").count(),
}


def write_files(location: Path) -> Path:
    """Write two small files into each of some folders with unusual names."""
    number = 0
    for folder in _FOLDERS:
        for file in _FILES:
            (location / folder).mkdir(parents=True, exist_ok=True)
            rows = pa.table({"id": pa.array([number, number + 1], pa.int64())})
            pq.write_table(rows, location / folder / file)
            number += 2
    return location


def sorted_rows(rows: DataFrame) -> list[str]:
    """Return the rows as texts, in order."""
    return sorted(str(row) for row in rows.collect())


def with_values(spark: SparkSession) -> None:
    """Make the view `d` of the queries, which has no files."""
    values = [("a b,é+&", 1), ("50%(1)", 2), ("plain", 3)]
    spark.createDataFrame(values, "k string, n int").createOrReplaceTempView("d")


def differences(
    spark: SparkSession, client: windrow.Client, folder: Path, *, every: bool = False
) -> dict[str, Any]:
    """Return the queries whose rows differ from those of Spark's own reader, with both.

    They are asked of a table read in groups, and some of a table of each reader; only the quick
    ones unless `every` is true.
    """
    location = write_files(folder / "names")
    client.register_table("names.files", str(location))
    client.refresh("names.files")
    with_values(spark)
    spark.read.parquet(str(location)).createOrReplaceTempView("theirs")
    for reader in READERS:
        client.read(spark, "names.files", reader=reader).createOrReplaceTempView(f"by_{reader}")
    different = {}
    for name in QUERIES if every else _QUICK:
        query = QUERIES[name]
        theirs = sorted_rows(spark.sql(query.format(t="theirs")))
        for reader in READERS if name in _OF_EVERY_READER else ("grouped",):
            ours = sorted_rows(spark.sql(query.format(t=f"by_{reader}")))
            if ours != theirs:
                different[f"{reader}: {name}"] = (ours, theirs)
    files = spark.read.parquet(str(location))
    for name, ask in _OF_METADATA.items():
        theirs = sorted_rows(ask(files))
        for reader in READERS:
            ours = sorted_rows(ask(client.read(spark, "names.files", reader=reader)))
            if ours != theirs:
                different[f"{reader}: metadata, {name}"] = (ours, theirs)
    return different | _differences_in_another_session(spark)


def _differences_in_another_session(spark: SparkSession) -> dict[str, Any]:
    spark.table("by_grouped").createOrReplaceGlobalTempView("names_of_another")
    query = "SELECT id, input_file_name() FROM {t}"
    theirs = sorted_rows(spark.sql(query.format(t="theirs")))
    ours = sorted_rows(spark.newSession().sql(query.format(t="global_temp.names_of_another")))
    spark.catalog.dropGlobalTempView("names_of_another")
    return {} if ours == theirs else {"another session": (ours, theirs)}


# What asks for files of rows that are read in groups, and leaves the other rows alone.
OF_GROUPS: dict[str, Callable[[DataFrame], DataFrame]] = {
    "select": lambda rows: rows.select(F.input_file_name(), "id"),
    "where": lambda rows: rows.where("id >= 0 AND input_file_name() != ''"),
    "block": lambda rows: rows.groupBy(F.expr("input_file_block_start()")).count(),
    "no column": lambda rows: rows.select().select(F.input_file_name()),
    "in a subquery": lambda rows: rows.sparkSession.range(9).join(
        rows.where("input_file_name() != ''"), "id", "left_semi"
    ),
}


def of_groups(spark: SparkSession, client: windrow.Client, folder: Path) -> dict[str, str]:
    """Return why each function is refused above `read_plan` and `read_buckets`; '' if it is not.

    They are asked of a table of `differences`, and of a bucketed one.
    """
    columns, spec = {"id": "bigint"}, {"columns": ["id"], "count": 2}
    (folder / "bucketed").mkdir()
    client.register_table(
        "names.buckets",
        str(folder / "bucketed"),
        columns=columns,
        partition_columns={},
        bucket_spec=spec,
    )
    client.write(spark.range(4), "names.buckets")
    frames = {
        "read_plan": client.read_plan(spark, client.plan("names.files")),
        "read_buckets": client.read_buckets(spark, "names.buckets"),
        "join_buckets": client.join_buckets(spark, "names.buckets", "names.buckets"),
    }
    errors = {}
    for name, rows in frames.items():
        for query, ask in OF_GROUPS.items():
            try:
                ask(rows).collect()
                errors[f"{name}: {query}"] = ""
            # Which error it is depends on the release.
            except Exception as error:
                errors[f"{name}: {query}"] = str(error)
        # The other rows are as before, and the names of other tables are Spark's own matter.
        rows.where("id >= 0").collect()
        theirs = spark.table("theirs").select("id", F.input_file_name().alias("f"))
        if "file:///" not in str(theirs.join(rows.select("id"), "id", "left_semi").first()):
            errors[f"{name}: of another table"] = ""
    return errors
