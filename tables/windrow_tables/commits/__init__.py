"""Writes to tables: staged aside, committed partition by partition, recovered after crashes."""

from windrow_tables.commits.recovery import Recovered, recover
from windrow_tables.commits.removal import Removal, drop_partitions
from windrow_tables.commits.table_write import TableWrite, begin

__all__ = ["Recovered", "Removal", "TableWrite", "begin", "drop_partitions", "recover"]
