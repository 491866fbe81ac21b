"""What users of Spark need besides `Client`: errors, and what the latest queries read and wrote."""

from windrow_spark.errors import SparkConnectError, TaskFailedError, UnsupportedTypeError
from windrow_spark.failures import plain_errors, task_failure
from windrow_spark.placement import default_parallelism
from windrow_spark.reading.reader import read_plan
from windrow_spark.relation.recent_scans import Figures, Scan, recent_scans
from windrow_spark.session_options import session_options
from windrow_spark.writing.recent_writes import Write, recent_writes
from windrow_tables.errors import ReadError

__all__ = [
    "Figures",
    "ReadError",
    "Scan",
    "SparkConnectError",
    "TaskFailedError",
    "UnsupportedTypeError",
    "Write",
    "default_parallelism",
    "plain_errors",
    "read_plan",
    "recent_scans",
    "recent_writes",
    "session_options",
    "task_failure",
]
