"""The columns of a table: those of its files, and one schema that fits them all."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from windrow_core.files.errors import (
    ColumnNameError,
    DuplicateColumnError,
    SchemaConflictError,
    UnknownTypeError,
    UnreadableTypeError,
)
from windrow_core.files.meanings import VARIANT, annotated
from windrow_core.files.types import TIMESTAMP, TIMESTAMP_NTZ, spark_type

# The same limits as in `windrow_core.models`.
MAX_NAME, MAX_TYPE_TEXT = 1024, 65_536
_MEANING_KEY = b"windrow:meaning"

_INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_UNSIGNED = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
}


@dataclass(frozen=True, slots=True)
class FileSchema:
    """The columns of one or more data files, in the table's own types.

    Attributes:
        schema: Their names and types. A type that no table can have, such as time64, stays as in
            the file. A column that means more than its layout has its meaning in its metadata.
        path: A file with these columns, relative to the table's location.
    """

    schema: pa.Schema
    path: str


def file_schema(parquet: Any, by_spark: Mapping[str, str] | None = None) -> pa.Schema:
    """Return the columns of a Parquet footer in the types that a table has for them.

    Unsigned integers widen. INT96 and every UTC-adjusted timestamp become Spark's `timestamp`,
    other timestamps `timestamp_ntz`, all in microseconds. Dictionaries become the type of their
    values; enums, large strings and string views become strings; durations become bigint.

    Args:
        parquet: A `pyarrow.parquet.ParquetSchema`.
        by_spark: What `told_by_spark` returns for the same footer.
    """
    leaves = iter(range(len(parquet.names)))
    arrow = parquet.to_arrow_schema()
    columns = [at for at, field in enumerate(arrow) for _ in range(leaf_count(field.type))]
    meanings = {arrow.names[at]: meaning for at, meaning in annotated(parquet, columns).items()}
    meanings |= by_spark or {}
    return pa.schema(
        [
            meaning_as(
                pa.field(field.name, _table_type(field.type, parquet, leaves)),
                meanings.get(field.name),
            )
            for field in arrow
        ]
    )


def meaning_as(field: pa.Field, meaning: str | None) -> pa.Field:
    """Return the field of a `FileSchema` with the meaning of its column, if it has one."""
    return field if meaning is None else field.with_metadata({_MEANING_KEY: meaning})


def _meaning_of(field: pa.Field) -> str | None:
    meaning = (field.metadata or {}).get(_MEANING_KEY)
    return None if meaning is None else meaning.decode()


def leaf_count(type_: pa.DataType) -> int:
    """Return how many Parquet columns hold a column of this type."""
    if isinstance(type_, pa.BaseExtensionType):
        return leaf_count(type_.storage_type)
    if pt.is_dictionary(type_):
        return leaf_count(type_.value_type)
    return sum(leaf_count(field.type) for field in fields_in(type_)) if pt.is_nested(type_) else 1


def fields_in(type_: pa.DataType) -> list[pa.Field]:
    """Return the direct fields of a nested type; none for any other type."""
    if pt.is_map(type_):
        return [type_.key_field, type_.item_field]
    return [type_.field(index) for index in range(type_.num_fields)]


def field_count(schema: pa.Schema) -> int:
    """Return how many fields a schema has at all levels, with the lists, maps and structs."""
    return sum(1 + field_count(pa.schema(fields_in(field.type))) for field in schema)


def _table_type(type_: pa.DataType, parquet: Any, leaves: Iterator[int]) -> pa.DataType:
    if isinstance(type_, pa.BaseExtensionType):
        return _table_type(type_.storage_type, parquet, leaves)
    if pt.is_struct(type_):
        return pa.struct(
            [pa.field(field.name, _table_type(field.type, parquet, leaves)) for field in type_]
        )
    if pt.is_map(type_):
        return pa.map_(
            _table_type(type_.key_type, parquet, leaves),
            _table_type(type_.item_type, parquet, leaves),
        )
    if pt.is_nested(type_) and type_.num_fields == 1:
        return pa.list_(_table_type(type_.field(0).type, parquet, leaves))
    leaf = parquet.column(next(leaves))
    if pt.is_timestamp(type_) and leaf.physical_type == "INT96":
        return TIMESTAMP
    table_type = scalar_type(type_)
    # Enums are bytes to Arrow and text to Spark.
    is_enum = pt.is_binary(table_type) and leaf.logical_type.type == "ENUM"
    return pa.string() if is_enum else table_type


def scalar_type(type_: pa.DataType) -> pa.DataType:
    """Return the type that a table has for values of a file's type without parts."""
    if pt.is_dictionary(type_):
        return scalar_type(type_.value_type)
    if (signed := _UNSIGNED.get(type_)) is not None:
        return signed
    if pt.is_timestamp(type_):
        return TIMESTAMP if type_.tz is not None else TIMESTAMP_NTZ
    if pt.is_decimal(type_) and type_.precision <= 38:
        return pa.decimal128(type_.precision, type_.scale)
    tests = (
        (pt.is_float16, pa.float32()),
        (pt.is_date, pa.date32()),
        (pt.is_duration, pa.int64()),
        (pt.is_large_string, pa.string()),
        (pt.is_string_view, pa.string()),
        (pt.is_large_binary, pa.binary()),
        (pt.is_binary_view, pa.binary()),
        (pt.is_fixed_size_binary, pa.binary()),
    )
    return next((table_type for is_a, table_type in tests if is_a(type_)), type_)


def widen(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """Return the narrowest type in which Spark's Parquet reader reads both; None if there is none.

    The order of the two does not matter. Structs are merged field by field.
    """
    if one == other or pt.is_null(other):
        return one
    if pt.is_null(one):
        return other
    if pt.is_nested(one) or pt.is_nested(other):
        return _widen_nested(one, other)
    if one in _INTEGERS and other in _INTEGERS:
        return max(one, other, key=_INTEGERS.index)
    if pt.is_decimal(one) or pt.is_decimal(other):
        return _widen_decimals(one, other)
    # 64-bit integers do not fit a double, and Spark refuses to read them as one.
    exact_as_double = {*_INTEGERS[:3], pa.float32(), pa.float64()}
    if one in exact_as_double and other in exact_as_double:
        return pa.float64()
    if {one, other} == {pa.date32(), TIMESTAMP_NTZ}:
        return TIMESTAMP_NTZ
    return None


def _widen_decimals(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    digits = [_digits(one), _digits(other)]
    if digits[0] is None or digits[1] is None:
        return None
    whole = max(digits[0][0], digits[1][0])
    scale = max(digits[0][1], digits[1][1])
    return pa.decimal128(whole + scale, scale) if whole + scale <= 38 else None


def _digits(type_: pa.DataType) -> tuple[int, int] | None:
    """Return the digits before and after the point that Spark requires of a decimal."""
    if pt.is_decimal(type_):
        return type_.precision - type_.scale, type_.scale
    if type_ in _INTEGERS:
        return (20 if type_ == pa.int64() else 10), 0
    return None


def _widen_nested(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    if pt.is_list(one) and pt.is_list(other):
        item = widen(one.value_type, other.value_type)
        return None if item is None else pa.list_(item)
    if pt.is_map(one) and pt.is_map(other):
        key, item = widen(one.key_type, other.key_type), widen(one.item_type, other.item_type)
        return None if key is None or item is None else pa.map_(key, item)
    if not (pt.is_struct(one) and pt.is_struct(other)):
        return None
    fields = {field.name.lower(): field for field in one}
    if len(fields) < one.num_fields or len({field.name.lower() for field in other}) < (
        other.num_fields
    ):
        return None
    for field in other:
        current = fields.setdefault(field.name.lower(), field)
        type_ = widen(current.type, field.type)
        if type_ is None:
            return None
        fields[field.name.lower()] = current.with_type(type_)
    return pa.struct(list(fields.values()))


class ColumnNames:
    """Finds columns by name, without regard to case.

    Args:
        schema: Its names must differ by more than case.
        path: File to name in the error; empty if the columns are not a file's.
    """

    def __init__(self, schema: pa.Schema, path: str = "") -> None:
        self._indices: dict[str, int] = {}
        for index, name in enumerate(schema.names):
            other = self._indices.setdefault(name.lower(), index)
            if other != index:
                raise DuplicateColumnError(schema.names[other], name, path)

    def find(self, name: str) -> int | None:
        """Return the index of the column, or None."""
        return self._indices.get(name.lower())


def merge_schemas(sources: Iterable[FileSchema], partition_names: Collection[str]) -> pa.Schema:
    """Merge the columns of files, in order of first appearance.

    Names are matched without regard to case; the first spelling stays. A column that is
    also a partition column is left out: the folder's value wins, as in Spark.

    Raises:
        ColumnNameError: The name of a column is empty, or too long.
        DuplicateColumnError: One file holds two columns, or fields of one struct, that differ by
            case only.
        SchemaConflictError: Two files hold one column, and no type fits both of its types.
        UnreadableTypeError: A column has a type that Spark lacks, or one that is not read here.
    """
    partitions = {name.lower() for name in partition_names}
    columns: dict[str, pa.Field] = {}
    sources_of: dict[str, list[tuple[pa.DataType, str]]] = {}
    for source in sources:
        ColumnNames(source.schema, source.path)
        for field in source.schema:
            key = field.name.lower()
            if key in partitions:
                continue
            _check_supported(field, source.path)
            _check_nested_names(field, source.path)
            current = columns.setdefault(key, field)
            type_ = widen(current.type, field.type)
            if type_ is None:
                raise _conflict(field, source.path, sources_of[key])
            columns[key] = current.with_type(type_)
            sources_of.setdefault(key, []).append((field.type, source.path))
    return pa.schema(list(columns.values()))


def declared_data(declared: pa.Schema, partition_names: Iterable[str]) -> pa.Schema:
    """Return declared columns without the partition columns among them."""
    ColumnNames(declared)
    partitions = ColumnNames(pa.schema([(name, pa.null()) for name in partition_names]))
    return pa.schema([field for field in declared if partitions.find(field.name) is None])


def data_schema_of(
    declared: pa.Schema | None, sources: Sequence[FileSchema], partition_names: Collection[str]
) -> pa.Schema:
    """Return the data columns of a table: the declared ones, or else all columns of its files."""
    if declared is None:
        return merge_schemas(sources, partition_names)
    check_declared(declared, sources)
    return declared


def check_declared(declared: pa.Schema, sources: Sequence[FileSchema]) -> None:
    """Check that every file can be read in the declared types; other columns do not matter.

    Raises:
        DuplicateColumnError: One file holds two columns that differ by case only.
        SchemaConflictError: A file holds a declared column in a type that does not fit.
        UnreadableTypeError: A declared column is a variant, whose layout is not its value.
    """
    for source in sources:
        names = ColumnNames(source.schema, source.path)
        for field in declared:
            index = names.find(field.name)
            if index is None:
                continue
            type_ = source.schema.field(index).type
            if _meaning_of(source.schema.field(index)) == VARIANT:
                raise UnreadableTypeError(field.name, VARIANT, source.path)
            if widen(field.type, type_) != field.type:
                raise SchemaConflictError(
                    field.name, _type_name(type_), source.path, _type_name(field.type), ""
                )


def _check_supported(field: pa.Field, path: str) -> None:
    if not 0 < len(field.name) <= MAX_NAME:
        raise ColumnNameError(field.name, path, MAX_NAME)
    try:
        layout = spark_type(field.type)
    except UnknownTypeError as error:
        raise UnreadableTypeError(field.name, str(field.type), path) from error
    if len(layout) > MAX_TYPE_TEXT:
        excerpt = f"{layout[:40]}… ({len(layout):,} characters, of {MAX_TYPE_TEXT:,} at most)"
        raise UnreadableTypeError(field.name, excerpt, path)
    if (meaning := _meaning_of(field)) is not None:
        has_values = meaning != VARIANT and "void" not in layout
        raise UnreadableTypeError(field.name, meaning, path, layout if has_values else "")


def _check_nested_names(field: pa.Field, path: str) -> None:
    if not pt.is_nested(field.type):
        return
    children = fields_in(field.type)
    if pt.is_struct(field.type):
        ColumnNames(pa.schema(children), path)
    for child in children:
        _check_nested_names(child, path)


def _conflict(
    field: pa.Field, path: str, others: Sequence[tuple[pa.DataType, str]]
) -> SchemaConflictError:
    other_type, other_path = next(
        (entry for entry in others if widen(entry[0], field.type) is None), others[0]
    )
    return SchemaConflictError(
        field.name, _type_name(other_type), other_path, _type_name(field.type), path
    )


def _type_name(type_: pa.DataType) -> str:
    try:
        return spark_type(type_)
    except UnknownTypeError:
        return str(type_)
