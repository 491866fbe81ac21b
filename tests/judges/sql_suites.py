"""Suites of Spark's module `spark-sql`.

Suites that look at nodes of plans in each test, such as ParquetV1FilterSuite and
ParquetV1SchemaPruningSuite, judge no rows and are not here.
"""

from __future__ import annotations

from tests.judges.spark_suites import NODES, SQL, Suite

_FILES = f"{SQL}.execution.datasources"
_PARQUET = f"{_FILES}.parquet"
_PATH = "compares the path of the file, which is read as a copy in a folder"

SUITES = (
    Suite(f"{SQL}.sources.ParquetHadoopFsRelationSuite"),
    Suite(f"{_PARQUET}.ParquetV1PartitionDiscoverySuite"),
    Suite(f"{_PARQUET}.ParquetV1QuerySuite", excluded={"returning batch for wide table": NODES}),
    Suite(f"{_FILES}.CSVReadSchemaSuite"),
    Suite(f"{_FILES}.HeaderCSVReadSchemaSuite"),
    Suite(f"{_FILES}.JsonReadSchemaSuite"),
    Suite(f"{_FILES}.MergedParquetReadSchemaSuite"),
    Suite(f"{_FILES}.OrcReadSchemaSuite"),
    Suite(f"{_FILES}.ParquetReadSchemaSuite"),
    Suite(f"{_FILES}.text.TextV1Suite"),
    Suite(
        f"{_FILES}.json.JsonV1Suite",
        excluded={"SPARK-23723: specified encoding is not matched to actual encoding": _PATH},
    ),
    Suite(
        f"{_FILES}.csv.CSVv1Suite",
        excluded={
            "test for FAILFAST parsing mode": _PATH,
            "SPARK-49444: CSV parsing failure with more than max columns": _PATH,
            "test for FAILFAST parsing mode on CSV v1": _PATH,
        },
    ),
)
