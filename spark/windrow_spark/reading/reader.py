"""The grouped reader: a plan becomes a DataFrame with one task per split group."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import islice
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import RDD, StorageLevel, cloudpickle
from pyspark.serializers import NoOpSerializer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BooleanType, StructField, StructType

import windrow_core
from windrow_core.files.file_fields import (
    DEFAULT,
    FIELD_ID,
    NAMES_IN_FILES,
    named_children,
    with_children,
)
from windrow_core.files.formats import READ_BY_SPARK
from windrow_core.models import FileField, Plan, SortColumn
from windrow_spark import executor, host_cache
from windrow_spark.arrow_types import arrow_schema, spark_schema
from windrow_spark.errors import (
    CaseSensitiveNamesError,
    OnlySparkReadsError,
    UnfitReadError,
    UnsupportedDeletesError,
)
from windrow_spark.executor.filters import columns_of
from windrow_spark.executor.packing import is_packable
from windrow_spark.executor.reading import (
    CACHED_ON_KEY,
    DELETES_KEY,
    RESIDUAL_KEY,
    packing_task_of,
    task_of,
)
from windrow_spark.executor.rebasing import Calendars, may_be_rebased
from windrow_spark.executor.shipping import Count, PartitionReader, Task, shipped
from windrow_spark.executor.sorting import is_sortable
from windrow_spark.executor.spec import BARE_ROWS, ReadLimits, ReadSpec, SortKey
from windrow_spark.interpreter import interpreter_of_tasks
from windrow_spark.placement import Descriptor, placed, placed_bytes, require_classic
from windrow_spark.reading.equalities import check_equalities
from windrow_spark.reading.group_names import refuse_names_of_groups
from windrow_spark.reading.session_calendars import calendars_of
from windrow_spark.session_settings import check_settings

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
    """
    check_readable(spark, plan)
    check_groups(plan, groups)
    if not len(groups):
        return spark.createDataFrame([], _schemas_of(plan).output)
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


def check_files(plan: Plan) -> None:
    """Refuse files that cannot be read in groups."""
    if plan.format in READ_BY_SPARK:
        raise OnlySparkReadsError(
            plan.table,
            plan.format,
            "this call reads all files in groups",
            "read it with `client.read` on a classic session",
        )
    if plan.transactional == "full" or plan.logged:
        return
    if plan.summary.delete_files:
        raise UnsupportedDeletesError(plan.table, plan.summary.delete_files)


def check_groups(plan: Plan, groups: pa.Table) -> None:
    """Refuse groups with files that the grouped reader would read differently from Spark's."""
    type_ = groups.schema.field("splits").type.value_type
    # An older coordinator has no such column.
    if type_.get_field_index("grouped") < 0:
        return
    splits = pa.chunked_array([chunk.flatten() for chunk in groups["splits"].chunks], type_)
    unlike = pc.equal(pc.struct_field(splits, "grouped"), False)
    at = pc.index(unlike, True).as_py()
    if at >= 0 and plan.transactional == "full":
        raise UnfitReadError(
            f"one of the columns asked for has values in file {splits[at].as_py()['path']!r} of "
            f"transactional table {plan.table!r} that cannot be read exactly",
            "leave out char columns, times in lists, maps and structs, and times and decimals "
            "without statistics in the file, or compact the table in Hive ('major')",
        )
    if at >= 0:
        raise OnlySparkReadsError(
            plan.table,
            plan.format,
            "this call reads all files in groups",
            'read it with `client.read` on a classic session, not with `reader="grouped"`',
            splits[at].as_py()["path"],
        )


def descriptors_of(groups: pa.Table) -> list[Descriptor]:
    """Return one descriptor per group, in order: its splits as a compressed Arrow stream.

    The residual filter, the host that caches the files and the delete files are in the stream's
    metadata.

    Args:
        groups: The groups of a plan, as the coordinator streams them.
    """
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    descriptors = []
    # A coordinator that does not cache has no such column.
    has_caches = "cached_on" in groups.column_names
    for hosts, cached_on, residual, deletes, splits in zip(
        groups["hosts"].to_pylist(),
        groups["cached_on"].to_pylist() if has_caches else [None] * len(groups),
        groups["residual_filter"].to_pylist(),
        _delete_texts(groups),
        groups["splits"],
        strict=True,
    ):
        batch = pa.RecordBatch.from_struct_array(splits.values)
        beside = {RESIDUAL_KEY: residual, CACHED_ON_KEY: cached_on, DELETES_KEY: deletes}
        metadata = {key: text.encode() for key, text in beside.items() if text is not None}
        schema = batch.schema.with_metadata(metadata)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, schema, options=options) as writer:
            writer.write_batch(batch.replace_schema_metadata(metadata))
        content = sink.getvalue().to_pybytes()
        descriptors.append(Descriptor(content=content, hosts=tuple(hosts or ())))
    return descriptors


def _delete_texts(groups: pa.Table) -> Sequence[str | None]:
    """Return for each group its delete files as JSON; None where it has none."""
    if "delete_files" not in groups.column_names:
        return [None] * len(groups)
    return [
        json.dumps([list(file.values()) for file in files]) if files else None
        for files in groups["delete_files"].to_pylist()
    ]


def _without_columns(plan: Plan, groups: pa.Table) -> Plan:
    """Return the plan of the same rows with only the columns that residual filters compare."""
    residuals = pc.drop_null(pc.unique(groups["residual_filter"])).to_pylist()
    names = {name for residual in residuals for name in columns_of(json.loads(residual))}
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
    output, hidden, partition = map(arrow_schema, schemas)
    output, hidden = (_in_files(schema, plan.file_fields) for schema in (output, hidden))
    data = pa.schema([field for field in output if field.name not in partition.names])
    names = {*partition.names, *data.names}
    hidden = pa.schema([field for field in hidden if field.name not in names])
    has_old = any(may_be_rebased(field.type) for field in (*data, *hidden))
    types = {field.name: field.type for schema in (partition, data, hidden) for field in schema}
    return ReadSpec(
        table=plan.table,
        location=plan.location,
        data=data,
        hidden=hidden,
        partition=partition,
        output=tuple(output.names),
        sort=_sort_keys(plan.sort_columns, types),
        calendars=calendars() if has_old else Calendars(),
        format=plan.format,
        is_acid=plan.transactional == "full",
        valid_write_ids=plan.valid_write_ids,
        logged=plan.logged,
        outlines=tuple(plan.outlines),
        limits=_limits(plan),
    )


def _limits(plan: Plan) -> ReadLimits:
    options = plan.options
    most_per_s = options.requests_per_second
    tasks = max(1, min(options.parallelism, plan.summary.group_count))
    ahead = options.model_dump(include={"prefetch_files", "prefetch_bytes"}, exclude_none=True)
    return ReadLimits(
        **ahead, requests_per_second=None if most_per_s is None else most_per_s / tasks
    )


def _in_files(schema: pa.Schema, file_fields: Mapping[str, FileField]) -> pa.Schema:
    """Return columns with metadata that says how files store them."""
    fields = [
        _in_file(field, file_fields[field.name]) if field.name in file_fields else field
        for field in schema
    ]
    return pa.schema(fields)


def _in_file(field: pa.Field, file_field: FileField) -> pa.Field:
    children = [
        _in_file(child, file_field.fields[name]) if name in file_field.fields else child
        for name, child in named_children(field.type)
    ]
    metadata = {
        FIELD_ID: None if file_field.id is None else str(file_field.id),
        NAMES_IN_FILES: json.dumps(file_field.names) if file_field.names else None,
        DEFAULT: file_field.default,
    }
    texts = {key: value for key, value in metadata.items() if value is not None}
    return field.with_type(with_children(field.type, children)).with_metadata(texts)


def _sort_keys(columns: Sequence[SortColumn], types: dict[str, pa.DataType]) -> tuple[SortKey, ...]:
    """Return the keys to merge by, up to the first column that is not read or cannot be sorted by.

    The rows do not show the order beyond such a column.
    """
    keys: list[SortKey] = []
    for column in columns:
        if column.name not in types or not is_sortable(types[column.name]):
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
