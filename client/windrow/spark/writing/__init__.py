"""The Spark side of planned writes: count, place, stage and check."""

from windrow.spark.writing.placing import place
from windrow.spark.writing.staging import stage

__all__ = ["place", "stage"]
