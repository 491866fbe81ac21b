"""The actions of a Delta table's log: lines of JSON, or rows of checkpoints, as columns."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from pyarrow import json

from windrow_core.files.arrays import flat, make_struct
from windrow_service.delta.errors import DeltaLogError
from windrow_service.delta.schemas import MAPPING_MODE
from windrow_service.delta.vectors import VECTOR, identities

# One line may hold the schema of a wide table, or statistics of its columns.
MAX_LINE_BYTES = 2**26

_PROTOCOL = pa.struct([("minReaderVersion", pa.int32()), ("readerFeatures", pa.list_(pa.string()))])
_METADATA = pa.struct(
    [
        ("format", pa.struct([("provider", pa.string())])),
        ("schemaString", pa.string()),
        ("partitionColumns", pa.list_(pa.string())),
        ("configuration", pa.struct([(MAPPING_MODE, pa.string())])),
    ]
)
SIDECAR = pa.struct([("path", pa.string())])
_HEAD = pa.schema([("protocol", _PROTOCOL), ("metaData", _METADATA), ("sidecar", SIDECAR)])
_COMMIT_INFO = pa.schema(
    [("commitInfo", pa.struct([("timestamp", pa.int64()), ("inCommitTimestamp", pa.int64())]))]
)


@dataclass(frozen=True, slots=True)
class Head:
    """What the log says about the table itself: its last `protocol` and `metaData`, as dicts."""

    protocol: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None

    def then(self, later: Head) -> Head:
        """Return the head after later actions."""
        return replace(
            self,
            protocol=later.protocol or self.protocol,
            metadata=later.metadata or self.metadata,
        )


def read_lines(location: str, body: bytes, schema: pa.Schema) -> pa.Table:
    """Return the lines of a commit as rows, with only the given fields."""
    lines = [line for line in body.splitlines() if line.strip()]
    if not lines:
        return schema.empty_table()
    longest = max(map(len, lines))
    if longest > MAX_LINE_BYTES:
        raise DeltaLogError(
            location,
            f"has a line of {longest:,} bytes in its log, and at most {MAX_LINE_BYTES:,} are read: "
            "write a checkpoint",
        )
    try:
        table = json.read_json(
            io.BytesIO(b"\n".join(lines)),
            read_options=json.ReadOptions(use_threads=False, block_size=MAX_LINE_BYTES + 2),
            parse_options=json.ParseOptions(
                explicit_schema=schema, unexpected_field_behavior="ignore"
            ),
        )
        table = table.select(schema.names).cast(schema)
    except (pa.ArrowException, ValueError, KeyError) as error:
        raise _damaged(location, " ".join(str(error).split())[:200]) from error
    if len(table) != len(lines):
        raise _damaged(location, "a line that is not one document")
    return table


def head_of_lines(location: str, body: bytes) -> tuple[Head, list[str]]:
    """Return the head in a commit, or in a checkpoint in JSON, and the names of its sidecars."""
    table = read_lines(location, body, _HEAD)
    return _head(table), table["sidecar"].drop_null().combine_chunks().field(0).to_pylist()


def _head(table: pa.Table) -> Head:
    last = [table[name].drop_null() for name in ("protocol", "metaData")]
    return Head(*(column[-1].as_py() if len(column) else None for column in last))


def committed_ms(location: str, body: bytes) -> int | None:
    """Return the time that a commit states, in milliseconds since 1970; None if it states none."""
    try:
        info = read_lines(location, body, _COMMIT_INFO)["commitInfo"].drop_null()
    except DeltaLogError:
        # Writers may put anything into `commitInfo`.
        return None
    for name in ("inCommitTimestamp", "timestamp"):
        moments = pc.struct_field(info, name).drop_null()
        if len(moments):
            return int(moments[0].as_py())
    return None


def add_columns(partition: Sequence[str]) -> pa.Schema:
    """Return the columns of added files; `partition` are the log's names of partition columns."""
    values = pa.struct([(name, pa.string()) for name in partition])
    return pa.schema(
        [
            ("path", pa.string()),
            ("partitionValues", values),
            ("size", pa.int64()),
            ("modificationTime", pa.int64()),
            ("stats", pa.string()),
            ("deletionVector", VECTOR),
        ]
    )


@dataclass(frozen=True, slots=True)
class LogChanges:
    """The changes that commits make; of each file the last mention counts.

    Attributes:
        added: Files that the commits add and leave in the table, with the columns `add_columns`.
        paths: Paths of all mentioned files, as the log has them.
        keys: `keys_of` all mentioned files.
    """

    added: pa.Table
    paths: pa.Array
    keys: pa.Array


def changes_of(location: str, bodies: Sequence[bytes], partition: Sequence[str]) -> LogChanges:
    """Return the changes that commits make.

    Args:
        location: Location of the table.
        bodies: Contents of the commits, in their order.
        partition: The log's names of the partition columns.
    """
    add_type = pa.struct(list(add_columns(partition)))
    remove_type = pa.struct([("path", pa.string()), ("deletionVector", VECTOR)])
    schema = pa.schema([("add", add_type), ("remove", remove_type)])
    table = pa.concat_tables(
        [schema.empty_table(), *(read_lines(location, body, schema) for body in bodies)]
    )
    adds, removes = flat(table["add"]), flat(table["remove"])
    both = pc.and_(adds.is_valid(), removes.is_valid())
    if pc.any(both).as_py():
        raise _damaged(location, "a line that adds a file and removes one")
    is_file = pc.or_(adds.is_valid(), removes.is_valid())
    adds, removes = adds.filter(is_file), removes.filter(is_file)
    paths = pc.coalesce(pc.struct_field(adds, "path"), pc.struct_field(removes, "path"))
    vectors = pc.if_else(
        adds.is_valid(),
        pc.struct_field(adds, "deletionVector"),
        pc.struct_field(removes, "deletionVector"),
    )
    if paths.null_count:
        raise _damaged(location, "a file without a path")
    keys = keys_of(paths, vectors)
    codes = keys.dictionary_encode()
    last = np.zeros(len(codes.dictionary), np.int64)
    # If an index appears several times, NumPy keeps the last assignment.
    last[np.asarray(codes.indices)] = np.arange(len(keys))
    ends = adds.take(pa.array(np.sort(last)))
    return LogChanges(
        required(location, pa.Table.from_struct_array(ends.filter(ends.is_valid())), partition),
        paths.unique(),
        codes.dictionary,
    )


def keys_of(paths: pa.Array, vectors: pa.Array) -> pa.Array:
    """Return the keys by which the log tells files apart: paths and deletion vectors."""
    return flat(pc.binary_join_element_wise(paths, identities(vectors), "\n"))


def required(location: str, rows: pa.Table, partition: Sequence[str]) -> pa.Table:
    """Return added files after checking that they have all required fields."""
    rows = rows.cast(add_columns(partition)).combine_chunks()
    for name in ("path", "size", "modificationTime"):
        if rows[name].null_count:
            raise _damaged(location, f"a file without {name!r}")
    if pc.any(pc.less(rows["size"], 0)).as_py():
        raise _damaged(location, "a file of a negative size")
    return rows


def head_of_rows(location: str, table: pa.Table) -> tuple[Head, list[str]]:
    """Return the head in rows of a checkpoint, and the names of its sidecars."""
    columns = {}
    for field in _HEAD:
        if field.name in table.column_names:
            lists = flat(table[field.name]).drop_null()
            columns[field.name] = [_as_type(one, field.type) for one in lists.to_pylist()]
    try:
        tables = [
            pa.table([pa.array(values, _HEAD.field(name).type)], names=[name])
            for name, values in columns.items()
        ]
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise _damaged(location, "a checkpoint whose columns have other types") from error
    lists = {table.column_names[0]: table.column(0).to_pylist() for table in tables}
    last = [lists.get(name) for name in ("protocol", "metaData")]
    sidecars = [one["path"] for one in lists.get("sidecar", [])]
    return Head(*(values[-1] if values else None for values in last)), sidecars


def _as_type(value: Any, type_: pa.DataType) -> Any:
    """Return a dict with the fields of a struct type alone; maps come as pairs."""
    if not pt.is_struct(type_):
        return value
    if isinstance(value, list):
        value = dict(value)
    if not isinstance(value, dict):
        return None
    return {field.name: _as_type(value.get(field.name), field.type) for field in type_}


def added_rows(
    location: str, adds: pa.StructArray, partition: Sequence[str]
) -> tuple[pa.Table, pa.StructArray | None]:
    """Return files of a checkpoint as `add_columns`, and their statistics if these are structs."""
    count = len(adds)
    columns = []
    try:
        for field in add_columns(partition):
            at = adds.type.get_field_index(field.name)
            values = adds.field(at) if at >= 0 else pa.nulls(count, field.type)
            if field.name == "partitionValues":
                values = _looked_up(values, partition)
            elif field.name == "deletionVector":
                values = _vectors(values)
            columns.append(pc.cast(values, field.type))
    except (pa.ArrowException, KeyError, TypeError) as error:
        raise _damaged(location, "a checkpoint whose columns have other types") from error
    table = pa.Table.from_arrays(columns, schema=add_columns(partition))
    at = adds.type.get_field_index("stats_parsed")
    parsed = adds.field(at) if at >= 0 and pt.is_struct(adds.type.field(at).type) else None
    return required(location, table, partition), parsed


def _looked_up(maps: pa.Array, names: Sequence[str]) -> pa.StructArray:
    if pt.is_null(maps.type):
        maps = pa.nulls(len(maps), pa.map_(pa.string(), pa.string()))
    columns = [pc.map_lookup(maps, pa.scalar(name), "last") for name in names]
    return make_struct(columns, [pa.field(name, pa.string()) for name in names], len(maps))


def _vectors(vectors: pa.Array) -> pa.Array:
    if pt.is_null(vectors.type):
        return pa.nulls(len(vectors), VECTOR)
    columns = []
    for field in VECTOR:
        at = vectors.type.get_field_index(field.name)
        values = vectors.field(at) if at >= 0 else pa.nulls(len(vectors))
        columns.append(pc.cast(values, field.type))
    return pa.StructArray.from_arrays(columns, fields=list(VECTOR), mask=vectors.is_null())


def _damaged(location: str, what: str) -> DeltaLogError:
    return DeltaLogError(location, f"is damaged: its log has {what}; restore it")
