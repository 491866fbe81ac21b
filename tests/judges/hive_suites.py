"""Suites of Spark's module `spark-hive`."""

from __future__ import annotations

from tests.judges.spark_suites import NODES, SQL, Suite

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
)
