"""Bucketed tables: one task reads each bucket, so Spark joins and groups without a shuffle."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow.compute as pc
from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession

from windrow_calls.coordinator import Coordinator
from windrow_calls.plans import SplitPlan
from windrow_core.models import BucketSpec
from windrow_spark.errors import BucketsDifferError, BucketsUnavailableError
from windrow_spark.placement import placed
from windrow_spark.reading.group_names import refuse_names_of_groups
from windrow_spark.reading.reader import check_readable, read_descriptors
from windrow_spark.reading.session_times import in_session
from windrow_spark.relation.bucketed_scans import WHOLE_BUCKETS
from windrow_spark.relation.table import ReadOptions, open_table
from windrow_tables.errors import UnfitReadError
from windrow_tables.executor.shipping import READER_NAME
from windrow_tables.groups.descriptors import Descriptor, descriptors_of


def open_buckets(
    client: Coordinator,
    spark: SparkSession,
    table: str,
    read: ReadOptions,
) -> DataFrame:
    """Return a bucketed table with one partition per bucket; see `windrow.Client.read_buckets`."""
    spec = _spec_of(client, table)
    plan = client.plan(
        table,
        filter=read.filter,
        columns=read.columns,
        snapshot_id=read.snapshot_id,
        max_staleness=read.max_staleness,
        **WHOLE_BUCKETS,
    )
    plan = replace(plan, info=in_session(spark, plan.info))
    check_readable(spark, plan.info)
    try:
        return _in_buckets(spark, plan, spec)
    except BucketsUnavailableError as error:
        warnings.warn(str(error), stacklevel=3)
        snapshot_id = plan.info.snapshot_id
        read = replace(read, snapshot_id=snapshot_id, max_staleness=None)
        return open_table(client, spark, table, read)


def check_alike(client: Coordinator, left: str, right: str, on: Sequence[str] | None) -> list[str]:
    """Return the bucket columns that two tables share."""
    one, other = _spec_of(client, left), _spec_of(client, right)
    names = [name.lower() for name in one.columns]
    same = names == [name.lower() for name in other.columns] and one.count == other.count
    if not same or sorted(names) != sorted(name.lower() for name in on or names):
        raise BucketsDifferError(
            left, _text(one), right, _text(other), ", ".join(on or one.columns)
        )
    return list(on or one.columns)


def _spec_of(client: Coordinator, table: str) -> BucketSpec:
    spec = client.table(table).definition.bucket_spec
    if spec is None:
        raise UnfitReadError(
            f"table {table!r} has no buckets",
            "register it with its bucket_spec, or read it with `client.read`",
        )
    return spec


def _text(spec: BucketSpec) -> str:
    return f"{spec.count} buckets by {', '.join(spec.columns)}"


def _in_buckets(spark: SparkSession, plan: SplitPlan, spec: BucketSpec) -> DataFrame:
    by_name = {column.name.lower(): column.name for column in plan.info.columns}
    missing = [name for name in spec.columns if name.lower() not in by_name]
    if missing:
        raise UnfitReadError(
            f"{missing[0]!r}, a bucket column of table {plan.info.table!r}, is not among the "
            "columns",
            "ask for it as well",
        )
    names = [by_name[name.lower()] for name in spec.columns]
    descriptors = _by_bucket(plan, spec.count)
    # A bucket without files is a partition without rows.
    tasks = placed(spark, descriptors).where("length(value) > 0")
    rows = read_descriptors(spark, plan.info, tasks)
    refuse_names_of_groups(spark)
    return _partitioned(spark, rows.where(_is_in_bucket(plan.info.table, names, spec)), names, spec)


def _by_bucket(plan: SplitPlan, count: int) -> list[Descriptor]:
    """Return one descriptor per bucket; those of buckets without files are empty."""
    buckets = plan.groups["bucket"]
    if buckets.null_count or (pc.max(buckets).as_py() or 0) >= count:
        raise BucketsUnavailableError(plan.info.table, "the bucket of some files is not known")
    if len(pc.unique(buckets)) < len(buckets):
        raise BucketsUnavailableError(
            plan.info.table, "files of one bucket are cached on several workers"
        )
    descriptors = dict(zip(buckets.to_pylist(), descriptors_of(plan.groups), strict=True))
    empty = Descriptor(content=b"", hosts=())
    return [descriptors.get(bucket, empty) for bucket in range(count)]


def _is_in_bucket(table: str, names: Sequence[str], spec: BucketSpec) -> str:
    """Return a condition that fails the query if a row is not in the bucket of its file.

    File names tell the bucket even if Hive wrote the files, but Hive hashes differently.
    """
    columns = ", ".join("`" + name.replace("`", "``") + "`" for name in names)
    wrong = (
        f"table {table} has a row whose bucket is not the one of Spark''s hash: "
        "its files are not bucketed as Spark does, so read it with client.read"
    )
    return (
        f"if(pmod(hash({columns}), {spec.count}) = spark_partition_id(), true, "
        f"raise_error('{wrong}'))"
    )


def _partitioned(
    spark: SparkSession, rows: DataFrame, names: Sequence[str], spec: BucketSpec
) -> DataFrame:
    """Return the rows after telling Spark that they are partitioned by its own hash."""
    jvm: Any = spark.sparkContext._jvm
    session = spark._jsparkSession
    keys, nothing = jvm.java.util.ArrayList(), jvm.scala.Option.empty()
    execution = rows._jdf.queryExecution()
    output = execution.analyzed().output()
    # By this name, `GroupNames.java` knows that nobody can tell the files of these rows.
    groups = execution.toRdd().setName(READER_NAME)
    for name in names:
        keys.add(output.apply(rows.columns.index(name)))
    no_order = jvm.PythonUtils.toSeq(jvm.java.util.ArrayList())
    reasons = []
    # The arguments that differ by version, from Spark 4.3 back to 3.5.
    for before, after in (((nothing,), (False,)), ((nothing,), ()), ((), ())):
        try:
            physical = jvm.org.apache.spark.sql.catalyst.plans.physical
            plan = jvm.org.apache.spark.sql.execution.LogicalRDD(
                output,
                groups,
                physical.HashPartitioning(jvm.PythonUtils.toSeq(keys), spec.count),
                no_order,
                False,
                *before,
                session,
                nothing,
                nothing,
                *after,
            )
            return DataFrame(jvm_dataset(jvm).ofRows(session, plan), spark)
        # To py4j a missing class is a package, which cannot be called.
        except (Py4JError, TypeError) as error:
            reasons.append(str(error).strip().partition("\n")[0])
    raise BucketsUnavailableError(f"on Spark {spark.version}", reasons[0])


def jvm_dataset(jvm: Any) -> Any:
    """Return the JVM's class of classic sessions' rows."""
    name = "org.apache.spark.sql.classic.Dataset"
    try:
        jvm.java.lang.Class.forName(
            name, False, jvm.java.lang.Thread.currentThread().getContextClassLoader()
        )
    except Py4JError:
        return jvm.org.apache.spark.sql.Dataset
    return jvm.org.apache.spark.sql.classic.Dataset
