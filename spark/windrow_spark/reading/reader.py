"""The grouped reader: a plan becomes a DataFrame with one task per split group."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import islice
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark import RDD, StorageLevel, cloudpickle
from pyspark.serializers import NoOpSerializer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BooleanType, StructField, StructType

import windrow_core
from windrow_core.models import Plan
from windrow_spark import own_failures
from windrow_spark.arrow_types import arrow_schema, spark_schema
from windrow_spark.errors import CaseSensitiveNamesError
from windrow_spark.interpreter import interpreter_of_tasks
from windrow_spark.placement import placed, placed_bytes, require_classic
from windrow_spark.reading.equalities import check_equalities
from windrow_spark.reading.group_names import refuse_names_of_groups
from windrow_spark.reading.session_calendars import calendars_of
from windrow_spark.reading.session_times import in_session, own_zone, zone_of
from windrow_spark.session_settings import check_settings
from windrow_tables import executor, host_cache
from windrow_tables.executor.packing import is_packable
from windrow_tables.executor.reading import packing_task_of, task_of
from windrow_tables.executor.rebasing import Calendars
from windrow_tables.executor.shipping import Count, PartitionReader, Task, shipped
from windrow_tables.executor.spec import BARE_ROWS, ReadSpec
from windrow_tables.groups.checks import check_files, check_groups
from windrow_tables.groups.descriptors import descriptors_of
from windrow_tables.groups.specs import PlanSchemas, residual_columns, spec_of

_BARE_ROWS = StructType([StructField(BARE_ROWS.names[0], BooleanType())])

# The reader travels with each task, so that executors need NumPy and pyarrow but not Windrow.
cloudpickle.register_pickle_by_value(executor)
cloudpickle.register_pickle_by_value(windrow_core)
cloudpickle.register_pickle_by_value(host_cache)


def read_plan(
    spark: SparkSession, plan: Plan, groups: pa.Table, count: Count | None = None
) -> DataFrame:
    """Return the rows of a plan; nothing is read before the DataFrame is used.

    Each group is one task, which prefers the hosts of the group. If the table has sort columns,
    the rows of each Spark partition are sorted by them.

    Args:
        spark: A classic session, which runs the tasks.
        plan: The coordinator's answer.
        groups: Its groups, as the coordinator streams them.
        count: Called at the end of each task, with the figures of what it has read.

    Returns:
        The plan's columns, in its order and with its types, all nullable. Its `count()` decodes
        only what residual filters compare. Queries with `input_file_name()` are refused.

    Raises:
        OnlySparkReadsError: Only Spark's own reader reads the table's files.
        UnsupportedDeletesError: Delete files apply to them.
        SparkConnectError: The session is one of Spark Connect.
        CaseSensitiveNamesError: The session tells names apart by case.
        EqualTimesError: The session takes INT96 for local times, and the plan compares times for
            equality.
        UnsupportedTypeError: A column has a type that cannot be read.

    Example:
        plan = client.plan("sales.events", filter="ds = '2026-11-01'")
        rows = windrow.spark.read_plan(spark, plan.info, plan.groups)
        rows.count()
    """
    plan = in_session(spark, plan)
    check_readable(spark, plan)
    check_groups(plan, groups)
    if not len(groups):
        return spark.createDataFrame([], _schemas_of(plan).output)
    own_failures.install()
    tasks = placed(spark, descriptors_of(groups))
    refuse_names_of_groups(spark)

    def bare_rows() -> DataFrame:
        bare = _without_columns(plan, groups)
        spec = _read_spec(spark, bare, _schemas_of(bare))
        with interpreter_of_tasks(spark.sparkContext):
            return tasks.mapInArrow(shipped_reader(spec, count), _BARE_ROWS).select()

    if not plan.columns:
        return bare_rows()
    rows = read_descriptors(spark, plan, tasks, count)

    def count_rows() -> int:
        # Counting rows of a cached DataFrame also caches them, with all their columns.
        is_cached = rows.storageLevel != StorageLevel.NONE
        return int(type(rows).count(rows) if is_cached else bare_rows().count())

    # Spark cannot prune the columns of this reader, so counting would decode them all.
    vars(rows)["count"] = count_rows
    return rows


def read_descriptors(
    spark: SparkSession, plan: Plan, tasks: DataFrame, count: Count | None = None
) -> DataFrame:
    """Return the rows of some groups, with the plan's columns.

    Args:
        spark: A classic session.
        plan: The coordinator's answer.
        tasks: One row per group, with the content of its descriptor. Each task reads the groups of
            one Spark partition.
        count: As for `read_plan`.
    """
    schemas = _schemas_of(plan)
    reader = shipped_reader(_read_spec(spark, plan, schemas), count)
    with interpreter_of_tasks(spark.sparkContext):
        return tasks.mapInArrow(reader, schemas.output)


def packed_batches(
    spark: SparkSession, plan: Plan, groups: pa.Table, count: Count | None = None
) -> Any:
    """Return the rows of a plan as the JVM's RDD of packed batches; None if they cannot be packed.

    Of a plan without columns, batches tell only the number of rows.

    Args:
        spark: A classic session, which runs the tasks.
        plan: The coordinator's answer; `check_readable` found it readable.
        groups: Its groups, as the coordinator streams them.
        count: Called at the end of each task, with the figures of what it has read.
    """
    if not len(groups):
        return None
    check_groups(plan, groups)
    if not plan.columns:
        plan = _without_columns(plan, groups)
    spec = _read_spec(spark, plan, _schemas_of(plan))
    if not all(map(is_packable, spec.output_schema.types)):
        return None
    descriptors = placed_bytes(spark, descriptors_of(groups)).toJavaRDD()
    as_they_are = NoOpSerializer()
    read: Any = RDD(descriptors, spark.sparkContext, as_they_are).mapPartitions(
        shipped(*_packed_code(packing_task_of), spec.packed(), count)
    )
    read._jrdd_deserializer = as_they_are
    with interpreter_of_tasks(spark.sparkContext):
        return read._jrdd.rdd()


def check_readable(spark: SparkSession, plan: Plan) -> None:
    """Refuse a plan or a session whose rows would differ from Spark's.

    Args:
        spark: The session that is to read.
        plan: The coordinator's answer.
    """
    check_files(plan)
    check_session(spark, plan)


def check_session(spark: SparkSession, plan: Plan) -> None:
    """Refuse a session in which a table's rows would differ from Spark's."""
    require_classic(spark)
    if spark.conf.get("spark.sql.caseSensitive") == "true":
        raise CaseSensitiveNamesError
    check_settings(spark, plan)


def _without_columns(plan: Plan, groups: pa.Table) -> Plan:
    """Return the plan of the same rows with only the columns that residual filters compare."""
    names = residual_columns(groups)
    columns = [*plan.columns, *plan.hidden_columns]
    hidden = [column for column in columns if column.name in names]
    return plan.model_copy(update={"columns": [], "hidden_columns": hidden, "sort_columns": []})


def shipped_reader(spec: ReadSpec, count: Count | None = None) -> Task:
    """Return the function that `mapInArrow` runs on descriptors; executors need no Windrow."""
    return shipped(*_packed_code(task_of), spec.packed(), count)


def partition_reader(spec: ReadSpec) -> PartitionReader:
    """Return the reader of a Python data source's partitions; executors need no Windrow."""
    return PartitionReader(*_packed_code(task_of), spec.packed())


@cache
def _packed_code(task: Callable[[bytes], Task]) -> tuple[bytes, str]:
    """Return the reader's code, which is the same for every read, and its digest."""
    code = zlib.compress(cloudpickle.dumps(task))
    return code, hashlib.sha256(code).hexdigest()


class Schemas(NamedTuple):
    """The columns of a plan as Spark's: those asked for, hidden ones, partition columns."""

    output: StructType
    hidden: StructType
    partition: StructType


def _schemas_of(plan: Plan) -> Schemas:
    kinds = (plan.columns, plan.hidden_columns, plan.partition_columns)
    # One call of Spark's parser for all of them.
    fields = iter(spark_schema([column for kind in kinds for column in kind]).fields)
    return Schemas(*(StructType(list(islice(fields, len(kind)))) for kind in kinds))


def _read_spec(spark: SparkSession, plan: Plan, schemas: Schemas) -> ReadSpec:
    spec = read_spec(plan, schemas, lambda: calendars_of(spark))
    if plan.local_times:
        spec = replace(spec, zone=zone_of(spark, own_zone(plan.format_options)))
    if spec.calendars.local:
        check_equalities(plan)
    return spec


def read_spec(plan: Plan, schemas: Schemas, calendars: Callable[[], Calendars]) -> ReadSpec:
    """Return what the tasks of a plan have in common.

    Args:
        plan: The coordinator's answer.
        schemas: Its columns.
        calendars: Returns how old dates and times are read; called only if there may be any.
    """
    return spec_of(plan, PlanSchemas(*map(arrow_schema, schemas)), calendars)
