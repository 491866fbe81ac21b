"""Suites of Spark's module `spark-sql`.

Suites that look at nodes of plans in each test, such as ParquetV1FilterSuite and
ParquetV1SchemaPruningSuite, judge no rows and are not here.
"""

from __future__ import annotations

from dataclasses import replace

from tests.judges.spark_suites import NODES, SQL, Suite

_FILES = f"{SQL}.execution.datasources"
_PARQUET = f"{_FILES}.parquet"
_PATH = "compares the path of the file, which is read as a copy in a folder"

_SUITES = (
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
        f"{_FILES}.orc.OrcV1QuerySuite",
        excluded={
            "SPARK-25579 ORC PPD should support column names with dot": "counts the rows that the "
            "scan of a tiny file skips",
            "SPARK-20728 Make ORCFileFormat configurable between sql/hive and sql/core": "expects a "
            "session without Hive's classes, and fails without Windrow, too",
            "SPARK-34862: Support ORC vectorized reader for nested column": NODES,
            "SPARK-37728: Reading nested columns with ORC vectorized reader should not cause "
            "ArrayIndexOutOfBoundsException": NODES,
            "SPARK-36594: ORC vectorized reader should properly check maximal number of fields": NODES,
        },
    ),
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
_OF_PARQUET = (
    "ParquetHadoopFsRelationSuite",
    "ParquetV1PartitionDiscoverySuite",
    "ParquetV1QuerySuite",
    "MergedParquetReadSchemaSuite",
    "ParquetReadSchemaSuite",
)
# Once more, with packs of all tables.
_PACKED = [replace(suite, mode="packs") for suite in _SUITES if suite.label in _OF_PARQUET]
SUITES = (*_SUITES, *_PACKED)
