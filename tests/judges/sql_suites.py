"""Suites of Spark's module `spark-sql`.

Suites that look at nodes of plans in each test, such as ParquetV1FilterSuite and
ParquetV1SchemaPruningSuite, judge no rows and are not here.
"""

from __future__ import annotations

from tests.judges.spark_suites import NODES, SQL, Suite

_PARQUET = f"{SQL}.execution.datasources.parquet"

SUITES = (
    Suite(f"{SQL}.sources.ParquetHadoopFsRelationSuite"),
    Suite(f"{_PARQUET}.ParquetV1PartitionDiscoverySuite"),
    Suite(f"{_PARQUET}.ParquetV1QuerySuite", excluded={"returning batch for wide table": NODES}),
)
