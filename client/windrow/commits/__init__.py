"""Writes to tables: staged aside, committed partition by partition, recovered after crashes."""

from windrow.commits.recovery import Recovered, recover
from windrow.commits.table_write import TableWrite, begin

__all__ = ["Recovered", "TableWrite", "begin", "recover"]
