"""Statements on Hive's own tables, as planned writes and by Spark's own writer on copies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import windrow
from tests.support.queries.accelerations import accelerate
from windrow.spark import recent_writes

_DATABASE = "written"
TABLES = {
    "texts": "(id BIGINT, Name STRING) PARTITIONED BY (kind STRING) STORED AS PARQUET",
    "days": "(id BIGINT, name STRING) PARTITIONED BY (kind DATE) STORED AS PARQUET",
    "numbers": "(id BIGINT, name STRING) PARTITIONED BY (kind INT) STORED AS PARQUET "
    "TBLPROPERTIES ('parquet.compression' = 'GZIP')",
    "flat": "(id BIGINT, name STRING, kind STRING) STORED AS PARQUET",
}
_TYPES = {"texts": "STRING", "days": "DATE", "numbers": "INT", "flat": "STRING"}
_VALUES = {
    "texts": ("a", "d/e", "O\\'N"),
    "days": ("2026-11-01", "0001-01-01", "2026-11-03"),
    "numbers": ("1", "-7", "12"),
    "flat": ("a", "b", "c"),
}
_FIRST = (
    "INSERT INTO {t} SELECT id, 'old', CAST(element_at(array('{0}', '{1}'), CAST(1 + id % 2 AS INT)) "
    "AS {k}) FROM range(6)"
)
_STATEMENTS = (
    _FIRST,
    "INSERT OVERWRITE {t} SELECT 20L, 'new', CAST('{1}' AS {k})",
    "INSERT INTO {t} BY NAME SELECT CAST('{2}' AS {k}) AS kind, 10L AS id, 'named' AS name",
    "INSERT OVERWRITE {t} SELECT 21L, 'new', null",
    "INSERT OVERWRITE {t} SELECT 22L, 'new', CAST('{0}' AS {k}) WHERE false",
)
_OF_PARTITIONS = (
    "INSERT OVERWRITE {t} PARTITION (kind = '{0}') SELECT 30L, 'static'",
    "INSERT INTO {t} PARTITION (kind = '{1}') SELECT id, 'more' FROM range(40, 44)",
    "INSERT OVERWRITE {t} PARTITION (kind = '{1}') SELECT 50L, 'none' WHERE false",
    "INSERT INTO {t} PARTITION (kind) SELECT 60L, 'dynamic', CAST('{2}' AS {k})",
)
_LEFT_TO_SPARK = {
    "orc_": "(id BIGINT) STORED AS ORC",
    "text_": "(id BIGINT) STORED AS TEXTFILE",
}


def problems(spark: SparkSession, client: windrow.Client, folder: Path) -> dict[str, Any]:
    """Return what is not as it must be; empty if all is well.

    Args:
        spark: A session with a metastore.
        client: A coordinator that may read the folder.
        folder: Where the tables are made.
    """
    spark.sql(f"CREATE DATABASE {_DATABASE} LOCATION '{folder}/{_DATABASE}'")
    for name, columns in (TABLES | _LEFT_TO_SPARK).items():
        spark.sql(f"CREATE TABLE {_DATABASE}.{name} {columns}")
    for name, columns in TABLES.items():
        spark.sql(f"CREATE TABLE {_DATABASE}.{name}_copy {columns}")
    client.import_tables(spark, *(f"{_DATABASE}.{name}" for name in (*TABLES, *_LEFT_TO_SPARK)))
    unlike: dict[str, Any] = {}
    # The coordinator may be looked at again, which a busy machine makes slow.
    with accelerate(spark, client, f"{_DATABASE}.*", writes=True) as acceleration:
        for name in TABLES:
            statements = [*_STATEMENTS, *(() if name == "flat" else _OF_PARTITIONS)]
            for nth, statement in enumerate(statements):
                modes = ("static", "dynamic") if "OVERWRITE" in statement else ("static",)
                for mode in modes:
                    spark.conf.set("spark.sql.sources.partitionOverwriteMode", mode)
                    unlike |= _unlike(spark, name, statement, f"{name} {mode} {nth}")
            reason = acceleration.reasons().get(f"INSERT {_DATABASE}.{name}")
            if reason is not None:
                unlike[f"{name} reason"] = reason
        spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
        for name in _LEFT_TO_SPARK:
            spark.sql(f"INSERT INTO {_DATABASE}.{name} VALUES (1)")
            if f"INSERT {_DATABASE}.{name}" not in acceleration.reasons():
                unlike[name] = "planned"
    return unlike


def _unlike(spark: SparkSession, name: str, statement: str, label: str) -> dict[str, Any]:
    table = f"{_DATABASE}.{name}"
    count = len(recent_writes(table))
    states = []
    for one in (table, f"{table}_copy"):
        spark.sql(statement.format(*_VALUES[name], t=one, k=_TYPES[name]))
        rows = spark.sql(f"SELECT id, name, CAST(kind AS STRING) FROM {one}").collect()
        partitions = [] if name == "flat" else spark.sql(f"SHOW PARTITIONS {one}").collect()
        states.append((sorted(map(str, rows)), sorted(map(str, partitions))))
    unlike: dict[str, Any] = {} if states[0] == states[1] else {label: [statement, *states]}
    if len(recent_writes(table)) != count + 1:
        unlike[f"{label} is planned"] = False
    return unlike
