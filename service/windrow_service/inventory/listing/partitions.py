"""Partition columns from `key=value` folders, and bucket numbers from file names."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from windrow_core.files.arrays import flat, make_struct
from windrow_core.files.errors import UnknownTypeError
from windrow_core.files.listing import HIVE_DEFAULT_PARTITION, unescape
from windrow_core.files.partition_values import (
    InvalidValueError,
    convert,
    describe_type,
    infer_type,
    is_partition_type,
    resolved_type,
)
from windrow_core.files.schema import ColumnNames
from windrow_service.inventory.errors import (
    BucketNumberError,
    PartitionLayoutError,
    PartitionValueError,
)

# File names by Spark (part-00000-<uuid>_00003.c000.snappy.parquet) and by Hive (000003_0,
# 000003_0_copy_1, bucket_00003, bucket_00003_0), with or without a suffix.
_BUCKET_PATTERNS = (
    r"^part-.*_(?P<bucket>[0-9]{5,9})(?:\.[^_]*)?$",
    r"^(?P<bucket>[0-9]{1,9})_[0-9]+(?:_copy_[0-9]+)?(?:\.[^_]*)?$",
    r"^bucket_(?P<bucket>[0-9]{1,9})(?:_[0-9]+)?(?:\.[^_]*)?$",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Partitions:
    """The partition columns of n files.

    Attributes:
        schema: Partition columns in the order of the folders; none for a flat table.
        values: Struct array of length n with those fields; fields may be null, the struct is not.
    """

    schema: pa.Schema
    values: pa.StructArray


@dataclass(frozen=True, slots=True)
class _Level:
    """One level of folders: the distinct folder that each file is in."""

    folders: pa.Array
    codes: npt.NDArray[np.int64]


def partition_columns(paths: pa.ChunkedArray, declared: pa.Schema | None = None) -> Partitions:
    """Read the partition columns from the folders of n files.

    Args:
        paths: Relative to the table's location, without null.
        declared: Types of partition columns, by name; the types of other columns are inferred as
            Spark does. It may contain columns that are not partition columns.
    """
    names = ColumnNames(declared if declared is not None else pa.schema([]))
    fields: list[pa.Field] = []
    columns: list[pa.Array] = []
    for level in _split(paths):
        key, texts = _key_and_texts(level, paths)
        index = names.find(key)
        field = declared.field(index) if declared is not None and index is not None else None
        if field is not None and not is_partition_type(field.type):
            raise UnknownTypeError(str(field.type), "a folder name cannot represent it")
        distinct = pc.drop_null(texts)
        type_ = infer_type(distinct) if field is None else resolved_type(field.type, distinct)
        is_local = field is not None and type_ != field.type
        type_text = "timestamp" if is_local else describe_type(type_)
        values = _convert(texts, type_, type_text, key, level, paths)
        columns.append(values.take(pa.array(level.codes)))
        fields.append(pa.field(field.name if field is not None else key, type_))
    schema = pa.schema(fields)
    ColumnNames(schema)
    return Partitions(schema=schema, values=make_struct(columns, fields, len(paths)))


def bucket_numbers(paths: pa.ChunkedArray, bucket_count: int | None) -> pa.Array:
    """Read the bucket numbers from the names of n files.

    Args:
        paths: Relative to the table's location, without null.
        bucket_count: From the table's bucket spec; None if it has none.

    Returns:
        n numbers (int32); null if a name has none or the table has no bucket spec.
    """
    if bucket_count is None:
        return pa.nulls(len(paths), pa.int32())
    names = pc.replace_substring_regex(paths, r"^.*/", "")
    matches = [
        pc.struct_field(pc.extract_regex(names, pattern), [0]) for pattern in _BUCKET_PATTERNS
    ]
    numbers = pc.cast(pc.coalesce(*matches), pa.int32())
    too_large = pc.indices_nonzero(pc.fill_null(pc.greater_equal(numbers, bucket_count), False))
    if len(too_large):
        index = too_large[0].as_py()
        raise BucketNumberError(paths[index].as_py(), numbers[index].as_py(), bucket_count)
    return flat(numbers)


def _split(paths: pa.ChunkedArray) -> list[_Level]:
    if len(paths) == 0:
        return []
    segments = flat(pc.split_pattern(paths, "/"))
    lengths = pc.list_value_length(segments).to_numpy(zero_copy_only=False)
    depth = int(lengths[0])
    if unequal := np.flatnonzero(lengths != depth)[:1].tolist():
        raise PartitionLayoutError(
            paths[0].as_py(),
            paths[unequal[0]].as_py(),
            f"they are {depth - 1} and {int(lengths[unequal[0]]) - 1} folders deep",
        )
    texts = segments.flatten()
    first = np.arange(len(paths), dtype=np.int64) * depth
    levels = []
    for level in range(depth - 1):
        encoded = texts.take(pa.array(first + level)).dictionary_encode()
        codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        levels.append(_Level(encoded.dictionary, codes))
    return levels


def _key_and_texts(level: _Level, paths: pa.ChunkedArray) -> tuple[str, pa.Array]:
    """Return the level's key, and the text after `=` of each distinct folder."""
    parts = pc.extract_regex(level.folders, r"(?s)^(?P<key>[^=]+)=(?P<text>.+)$")
    if parts.null_count:
        code = pc.indices_nonzero(pc.is_null(parts))[0].as_py()
        folder = level.folders[code].as_py()
        reason = f"folder {folder!r} is not of the form `key=value`"
        if folder.startswith("=") or folder.endswith("="):
            reason = f"folder {folder!r} has no {'key' if folder.startswith('=') else 'value'}"
        raise PartitionLayoutError(_path_in(level, code, paths), "", reason)
    keys = pc.struct_field(parts, [0])
    different = pc.indices_nonzero(pc.not_equal(keys, keys[0]))
    if len(different):
        code = different[0].as_py()
        raise PartitionLayoutError(
            _path_in(level, 0, paths),
            _path_in(level, code, paths),
            f"one folder has the key {keys[0].as_py()!r}, the other {keys[code].as_py()!r}",
        )
    texts = pc.struct_field(parts, [1])
    is_default = pc.equal(texts, HIVE_DEFAULT_PARTITION)
    return unescape(keys[0].as_py()), pc.if_else(is_default, pa.scalar(None, pa.string()), texts)


def _convert(
    texts: pa.Array,
    type_: pa.DataType,
    type_text: str,
    key: str,
    level: _Level,
    paths: pa.ChunkedArray,
) -> pa.Array:
    try:
        return convert(texts, type_)
    except InvalidValueError as error:
        path = _path_in(level, error.index, paths)
        folder = level.folders[error.index].as_py()
        raise PartitionValueError(
            path[: path.index(folder) + len(folder)],
            key,
            unescape(texts[error.index].as_py()),
            type_text,
        ) from error


def _path_in(level: _Level, code: int, paths: pa.ChunkedArray) -> str:
    path: str = paths[int(np.argmax(level.codes == code))].as_py()
    return path
