"""Writes to tables: staged aside, committed partition by partition, recovered after crashes."""

from windrow_spark.commits.recovery import Recovered, recover
from windrow_spark.commits.removal import Removal, drop_partitions
from windrow_spark.commits.table_write import TableWrite, begin

__all__ = ["Recovered", "Removal", "TableWrite", "begin", "drop_partitions", "recover"]
