"""Rows of a relation as those of a batch of a stream."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from windrow_spark.relation.buckets import jvm_dataset
from windrow_spark.writing.expressions import named


def streaming_rows(rows: DataFrame, columns: StructType) -> Any:
    """Return the JVM's rows of a relation, which Spark takes for a batch of a stream.

    Args:
        rows: All columns of one relation, of a classic session.
        columns: The columns of the stream; those that the relation lacks are null.
    """
    spark = rows.sparkSession
    jvm: Any = spark.sparkContext._jvm
    relation = rows._jdf.queryExecution().analyzed().relation()
    logical = getattr(jvm.org.apache.spark.sql.execution.datasources, "LogicalRelation$")
    plan = getattr(logical, "MODULE$").apply(relation, True)
    batch = DataFrame(jvm_dataset(jvm).ofRows(spark._jsparkSession, plan), spark)
    if batch.columns != columns.names:
        batch = batch.select(
            *(
                named(one.name)
                if one.name in batch.columns
                else F.lit(None).cast(one.dataType).alias(one.name)
                for one in columns
            )
        )
    return batch._jdf
