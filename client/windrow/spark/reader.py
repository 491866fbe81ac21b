"""The grouped reader: a plan becomes a DataFrame of one task per split group."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Sequence
from functools import lru_cache

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession

from windrow import files, worker
from windrow.models import Plan, SortColumn
from windrow.spark import executor
from windrow.spark.descriptors import descriptors_of
from windrow.spark.errors import UnsupportedDeletesError, UnsupportedFormatError
from windrow.spark.executor.reading import task_of
from windrow.spark.executor.shipping import Task, shipped
from windrow.spark.executor.sorting import is_sortable
from windrow.spark.executor.spec import ReadSpec, SortKey
from windrow.spark.placement import placed, require_classic
from windrow.spark.types import arrow_schema, spark_schema

# The reader travels with each task, so that executors need NumPy and pyarrow but not Windrow.
cloudpickle.register_pickle_by_value(executor)
cloudpickle.register_pickle_by_value(files)
cloudpickle.register_pickle_by_value(worker)


def read_plan(spark: SparkSession, plan: Plan, groups: pa.Table) -> DataFrame:
    """Return the rows of a plan; nothing is read before the DataFrame is used.

    Each group is one task, which prefers the hosts of the group. Where the table has sort
    columns, the rows of each partition are sorted by them.

    Args:
        spark: A classic session, which runs the tasks.
        plan: What the coordinator answered.
        groups: Its groups, as the coordinator streams them.

    Returns:
        The plan's columns, in its order and with its types, all nullable.

    Raises:
        UnsupportedFormatError: The table's files are not Parquet.
        UnsupportedDeletesError: Delete files apply to them.
        SparkConnectError: The session is one of Spark Connect.
        UnsupportedTypeError: A column has a type that cannot be read.
    """
    if plan.format != "parquet":
        raise UnsupportedFormatError(plan.table, plan.format)
    if plan.summary.delete_files:
        raise UnsupportedDeletesError(plan.table, plan.summary.delete_files)
    require_classic(spark)
    spec = read_spec(plan)
    schema = spark_schema(plan.columns)
    if not len(groups):
        return spark.createDataFrame([], schema)
    return placed(spark, descriptors_of(groups)).mapInArrow(shipped_reader(spec), schema)


@lru_cache(maxsize=64)
def shipped_reader(spec: ReadSpec) -> Task:
    """Return what `mapInArrow` runs on descriptors; executors need not have Windrow to run it."""
    packed = zlib.compress(cloudpickle.dumps(task_of(spec)))
    return shipped(packed, hashlib.sha256(packed).hexdigest())


def read_spec(plan: Plan) -> ReadSpec:
    """Return what the tasks of a plan have in common.

    A Spark session must be running: its parser reads the types.

    Raises:
        UnsupportedTypeError: A column has a type that cannot be read.
    """
    partition = arrow_schema(spark_schema(plan.partition_columns))
    asked = arrow_schema(spark_schema(plan.columns))
    hidden = arrow_schema(spark_schema(plan.hidden_columns))
    data = pa.schema([field for field in asked if field.name not in partition.names])
    stored = {*partition.names, *data.names}
    hidden = pa.schema([field for field in hidden if field.name not in stored])
    known = {field.name: field.type for schema in (partition, data, hidden) for field in schema}
    return ReadSpec(
        table=plan.table,
        location=plan.location,
        data=data,
        hidden=hidden,
        partition=partition,
        output=tuple(asked.names),
        sort=_sort_keys(plan.sort_columns, known),
    )


def _sort_keys(columns: Sequence[SortColumn], known: dict[str, pa.DataType]) -> tuple[SortKey, ...]:
    """Return the keys to merge by, up to the first column that the plan does not give a type for.

    Such a column is not among those asked for: past it, the order cannot be seen in the rows.
    """
    keys: list[SortKey] = []
    for column in columns:
        if column.name not in known or not is_sortable(known[column.name]):
            break
        nulls_first = column.nulls_first
        keys.append(
            SortKey(
                name=column.name,
                descending=column.descending,
                nulls_first=not column.descending if nulls_first is None else nulls_first,
            )
        )
    return tuple(keys)
