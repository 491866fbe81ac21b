"""What runs on Spark: tables that plan each query, and the grouped reader."""

from windrow.spark.errors import (
    ReadError,
    SparkConnectError,
    TaskFailedError,
    UnsupportedTypeError,
)
from windrow.spark.failures import plain_errors, task_failure
from windrow.spark.placement import default_parallelism
from windrow.spark.reading.reader import read_plan
from windrow.spark.relation.recent import Figures, Scan, recent_scans
from windrow.spark.session_options import session_options

__all__ = [
    "Figures",
    "ReadError",
    "Scan",
    "SparkConnectError",
    "TaskFailedError",
    "UnsupportedTypeError",
    "default_parallelism",
    "plain_errors",
    "read_plan",
    "recent_scans",
    "session_options",
    "task_failure",
]
