"""The Spark side of planned writes: count, place, stage and check."""

from windrow_spark.writing.placing import place
from windrow_spark.writing.staging import stage

__all__ = ["place", "stage"]
