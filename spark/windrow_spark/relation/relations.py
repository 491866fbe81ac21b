"""Relations of Spark's over a table's snapshot."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from windrow_calls.coordinator import Coordinator
from windrow_calls.plans import SplitPlan
from windrow_core.models import BucketSpec, Plan
from windrow_spark import own_failures
from windrow_spark.arrow_types import spark_schema
from windrow_spark.relation import java_classes
from windrow_spark.relation.callbacks import Answering
from windrow_spark.relation.division import Reader
from windrow_spark.relation.pins import Pin, label_of


def relation_of(
    spark: SparkSession,
    plan: Plan,
    pin: Pin,
    buckets: BucketSpec | None,
    answers: Answering,
) -> DataFrame:
    """Return a table's snapshot as a DataFrame of one relation.

    Args:
        spark: A classic session.
        plan: A plan of the snapshot, which tells columns, format and size.
        pin: What its scans have in common.
        buckets: How its rows are divided into buckets, from `buckets_of`.
        answers: Answers its requests; see `java_classes.relation`.
    """
    own_failures.install()
    schema = spark_schema(plan.columns)
    return java_classes.relation(
        spark,
        java_classes.planned_format(spark, plan.format, plan.format_options),
        plan.format_options,
        schema,
        [c.name for c in plan.partition_columns if c.name in schema.names],
        # What the inventory says of partitions is about all files.
        pin.filter is None and pin.additions is None,
        buckets,
        plan.summary.size_bytes + plan.summary.bytes_pruned_by_limit,
        label_of(pin.table, pin.snapshot_id),
        pin.to_text(),
        answers,
    )


def buckets_of(client: Coordinator, plan: SplitPlan, reader: Reader) -> BucketSpec | None:
    """Return how a table's rows are divided into buckets, if groups can be read by them."""
    if reader == "native" or not len(plan) or plan.groups["bucket"].null_count:
        return None
    return client.table(plan.info.table).definition.bucket_spec
