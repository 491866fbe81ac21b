"""Files of a plan as one of Spark's own tables, for which nothing is listed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from windrow_core.files.schemes import is_remote
from windrow_core.models import Column, Plan
from windrow_spark.arrow_types import arrow_schema, spark_schema
from windrow_spark.defaults import with_defaults
from windrow_spark.hadoop import hadoop_path
from windrow_spark.placement import hosts_to_prefer
from windrow_spark.reading.session_times import own_zone, zone_of
from windrow_spark.relation.java_classes import planned_format
from windrow_tables.executor.local_times import in_type

# Tasks read no more than this if there are several for each slot.
_TASK_BYTES = 256 * 2**20

# The time of files that never change once they are written.
_NO_TIME = -(2**63)

# `PlannedFiles.java` splits the text of hosts at this character.
_BETWEEN_HOSTS = "\n"

_SAFE = "/=-_.~"
_ESCAPED = r"[^A-Za-z0-9/=\-_.~]"


def native_relation(
    spark: SparkSession,
    factory: Any,
    plan: Plan,
    home: str,
    columns: Sequence[Column],
    files: pa.Table,
    slots: int,
) -> Any:
    """Return files as the JVM's `HadoopFsRelation`.

    Args:
        spark: A classic session; its settings say how Spark reads.
        factory: The JVM's `PlannedFiles.Factory`.
        plan: The plan that the files are from.
        home: The table's location as `hadoop_location` returns it.
        columns: All columns of the table, in order, whichever are asked for: the fields of CSV have
            no names, and whether a line is malformed depends on all columns.
        files: `path`, `size_bytes`, `mtime_ns`, `partition`, `hosts`, and `etag` if it is known,
            in any order.
        slots: How many tasks run at the same time.
    """
    usable = hosts_to_prefer(spark)
    data, partition = schemas_of(plan, columns)
    zone = zone_of(spark, own_zone(plan.format_options)) if plan.local_times else ""
    values, places = _distinct(files["partition"], arrow_schema(partition), zone)
    statuses = pa.table(
        {
            "uri": _uris(plan.location, home, files["path"].cast(pa.string())),
            "size_bytes": files["size_bytes"].cast(pa.int64()),
            "mtime_us": np.full(len(files), _NO_TIME)
            if plan.reading.is_logged
            else np.asarray(files["mtime_ns"]) // 1_000,
            "partition": places,
            "hosts": _joined(files["hosts"], usable),
        }
    )
    if "etag" in files.column_names:
        statuses = statuses.append_column("etag", files["etag"].cast(pa.string()))
    format_ = planned_format(spark, plan.format, plan.format_options)
    if is_remote(plan.location):
        format_ = format_.remote()
    return factory.files(
        spark._jsparkSession,
        task_count(pc.sum(files["size_bytes"]).as_py(), slots),
        _BETWEEN_HOSTS.join(sorted(usable or ())),
        format_,
        plan.format_options,
        data.json(),
        partition.json(),
        arrow_stream(values),
        arrow_stream(statuses),
    )


def schemas_of(plan: Plan, columns: Sequence[Column]) -> tuple[StructType, StructType]:
    """Return the columns of a plan's files, and its partition columns, as Spark's own scan reads them.

    Args:
        plan: The plan.
        columns: All columns of the table, in order.
    """
    folders = [column.name for column in plan.partition_columns]
    fields = spark_schema(columns)
    # Values of other partition columns are not needed: conditions on them have been applied. Spark's
    # scan returns them in this order, which is that of the relation's scan.
    names = {column.name for column in plan.columns}
    partition = StructType([fields[name] for name in folders if name in names])
    data = StructType([field for field in fields if field.name not in folders])
    return with_defaults(data, plan.file_fields), partition


def task_count(size_bytes: int, slots: int) -> int:
    """Return how many tasks should read files, of few possible numbers: each has a session.

    Args:
        size_bytes: Bytes of all files.
        slots: How many tasks run at the same time.
    """
    rounds = max(1, math.ceil(size_bytes / (slots * _TASK_BYTES)))
    # Spark fails if it is to cut files for more tasks than there are bytes.
    return max(1, min(size_bytes, slots * (1 << (rounds - 1).bit_length())))


def _joined(hosts: pa.ChunkedArray, usable: frozenset[str] | None) -> pa.ChunkedArray:
    """Return the hosts of each file as one text, without those that are not usable."""
    host_texts = pc.fill_null(pc.binary_join(hosts, _BETWEEN_HOSTS), "")
    if usable is None:
        return host_texts
    texts = host_texts.combine_chunks().dictionary_encode()
    each = [text.split(_BETWEEN_HOSTS) for text in texts.dictionary.to_pylist()]
    left = [_BETWEEN_HOSTS.join(host for host in names if host in usable) for names in each]
    return pa.chunked_array([pa.array(left, pa.string()).take(texts.indices)])


def _uris(location: str, home: str, paths: pa.ChunkedArray) -> pa.ChunkedArray:
    if pc.any(pc.match_substring_regex(paths, "^/|://")).as_py():
        uris = [hadoop_path(location, home, path) for path in paths.to_pylist()]
        return pa.chunked_array([[escaped(uri or "") for uri in uris]])
    if pc.any(pc.match_substring_regex(paths, _ESCAPED)).as_py():
        paths = pa.chunked_array([[quote(path, safe=_SAFE) for path in paths.to_pylist()]])
    folder = f"{escaped(home.rstrip('/'))}/"
    return pc.binary_join_element_wise(folder, paths, "")


def escaped(uri: str) -> str:
    """Return a URI whose path is escaped."""
    scheme, _, rest = uri.partition("://")
    authority, slash, path = rest.partition("/")
    return f"{scheme}://{authority}{slash}{quote(path, safe=_SAFE)}"


def _distinct(
    partition: pa.ChunkedArray, columns: pa.Schema, zone: str
) -> tuple[pa.Table, npt.NDArray[np.int32]]:
    """Return the distinct partitions of files, and for each file the index of its partition."""
    rows = pa.table({"": pa.nulls(len(partition), pa.bool_())})
    codes: list[npt.NDArray[np.int64]] = []
    struct: Any = partition.combine_chunks()
    arrays: list[pa.Array] = []
    for field in columns:
        values = in_type(struct.field(field.name), field.type, zone)
        arrays.append(values)
        codes.append(np.asarray(values.dictionary_encode().indices.fill_null(-1), np.int64))
    if not codes:
        return rows.slice(0, 1), np.zeros(len(partition), np.int32)
    _, first, places = np.unique(np.stack(codes), axis=1, return_index=True, return_inverse=True)
    distinct = [values.take(pa.array(first)) for values in arrays]
    return pa.table(distinct, schema=columns), np.asarray(places, np.int32).reshape(-1)


def arrow_stream(table: pa.Table) -> bytes:
    """Return a table as an Arrow stream of one batch."""
    sink = pa.BufferOutputStream()
    batch: Sequence[pa.RecordBatch] = table.combine_chunks().to_batches()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        for one in batch:
            stream.write_batch(one)
    content: bytes = sink.getvalue().to_pybytes()
    return content
