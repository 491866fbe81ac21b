"""Suites of Spark's module `spark-hive`, and those that write to tables of Spark's catalog."""

from __future__ import annotations

from tests.judges.spark_suites import NODES, SQL, Suite

# Each takes minutes.
_PARTS = (
    "join[0-9].*",
    "join_.*",
    "groupby.*",
    "union.*",
    "ppd.*",
    "input[0-9].*",
    "udf_[a-e].*",
    "udf_[f-z].*",
    "udf[0-9].*",
    # The others.
    "(?!groupby|union|auto_join|join|ppd|input[0-9]|udf)[a-l].*",
    "(?!union|ppd|udf)[m-z].*",
)
_COMMANDS = "looks for Spark's own commands in the plan"

SUITES = (
    Suite(f"{SQL}.hive.orc.OrcHadoopFsRelationSuite"),
    Suite(
        f"{SQL}.hive.HiveParquetMetastoreSuite",
        excluded={
            "conversion is working": NODES,
            "SPARK-15248: explicitly added partitions should be readable": "counts `inputFiles`, "
            "which has all files of a table that Windrow plans",
        },
    ),
    Suite(
        f"{SQL}.FileSourceSQLInsertTestSuite",
        "writes",
        excluded={"SPARK-48817: test multi inserts": _COMMANDS},
    ),
    Suite(f"{SQL}.hive.InsertSuite", "writes"),
    # Hive's own queries, with what Hive answered, on its tables of text.
    Suite(f"{SQL}.hive.execution.HiveWindowFunctionQuerySuite"),
    Suite(f"{SQL}.hive.execution.HiveTypeCoercionSuite"),
    Suite(f"{SQL}.hive.execution.HashAggregationQuerySuite"),
    Suite(
        f"{SQL}.hive.execution.HiveQuerySuite",
        excluded={"ADD JAR command 2": "fetches a jar from a server"},
    ),
    *(Suite(f"{SQL}.hive.execution.HiveCompatibilitySuite", part=part) for part in _PARTS),
)
