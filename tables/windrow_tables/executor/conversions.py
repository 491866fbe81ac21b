"""Widening: from the type that a file holds to the type that the table declares.

The rules are those of Spark's Parquet reader: no conversion loses a value.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from windrow_core.files.file_fields import absent, is_mapped, position_in
from windrow_core.files.schema import fields_in, scalar_type

# Decimal digits that hold every value of an integer type.
_DIGITS = {
    pa.int8(): 3,
    pa.uint8(): 3,
    pa.int16(): 5,
    pa.uint16(): 5,
    pa.int32(): 10,
    pa.uint32(): 10,
    pa.int64(): 19,
    pa.uint64(): 20,
}


def stored_type(type_: pa.DataType) -> pa.DataType:
    """Return Parquet's own type of a column that Arrow has given a type of its own.

    Arrow's schema in a footer restores durations, dictionaries and extension types, which Spark
    does not know.
    """
    if isinstance(type_, pa.BaseExtensionType):
        return stored_type(type_.storage_type)
    if pt.is_dictionary(type_):
        return stored_type(type_.value_type)
    if pt.is_duration(type_):
        return pa.int64()
    return pa.float32() if pt.is_float16(type_) else type_


def is_same(source: pa.DataType, target: pa.DataType) -> bool:
    """Return whether values of one type are values of the other, field by field."""
    return bool(source == target) and not any(map(is_mapped, fields_in(target)))


def widens(source: pa.DataType, target: pa.DataType) -> bool:
    """Return whether every value of `source` can be read as `target` without loss."""
    source = stored_type(source)
    if is_same(source, target) or pt.is_null(source):
        return True
    if pt.is_nested(source) or pt.is_nested(target):
        return _nested_widens(source, target)
    if scalar_type(source) == target:
        return True
    if pt.is_integer(source):
        return _integer_widens(source, target)
    if pt.is_float32(source):
        return bool(pt.is_float64(target))
    if pt.is_decimal(source) and pt.is_decimal(target):
        scale_growth = target.scale - source.scale
        return bool(0 <= scale_growth <= target.precision - source.precision)
    if pt.is_date(source):
        return bool(pt.is_timestamp(target) and target.tz is None)
    if pt.is_timestamp(source) and pt.is_timestamp(target):
        return (source.tz is None) == (target.tz is None)
    return _is_bytes(source) and _is_bytes(target)


def convert(values: pa.Array, target: pa.DataType) -> pa.Array:
    """Return `values` as `target`, to which their type must widen."""
    source = values.type
    if is_same(source, target):
        return values
    if pt.is_null(source):
        return pa.nulls(len(values), target)
    if isinstance(source, pa.BaseExtensionType):
        return convert(values.storage, target)
    if pt.is_dictionary(source):
        return convert(values.dictionary_decode(), target)
    if (storage := stored_type(source)) != source:
        return convert(values.cast(storage), target)
    if pt.is_struct(target):
        return _convert_struct(values, target)
    if pt.is_map(target):
        return _convert_map(values, target)
    if pt.is_list(target):
        return _convert_list(values, target)
    if pt.is_timestamp(source) and source.unit == "ns":
        return _floor_nanoseconds(values).cast(target)
    return values.cast(target)


def _is_bytes(type_: pa.DataType) -> bool:
    return bool(
        pt.is_string(type_)
        or pt.is_large_string(type_)
        or pt.is_string_view(type_)
        or pt.is_binary(type_)
        or pt.is_large_binary(type_)
        or pt.is_binary_view(type_)
        or pt.is_fixed_size_binary(type_)
    )


def _integer_widens(source: pa.DataType, target: pa.DataType) -> bool:
    if pt.is_integer(target):
        unsigned_to_signed = pt.is_unsigned_integer(source) and not pt.is_unsigned_integer(target)
        if pt.is_unsigned_integer(target) and not pt.is_unsigned_integer(source):
            return False
        return bool(source.bit_width + unsigned_to_signed <= target.bit_width)
    if pt.is_decimal(target):
        return bool(target.precision - target.scale >= _DIGITS[source])
    return bool(pt.is_float64(target) and source.bit_width <= 32)


def _nested_widens(source: pa.DataType, target: pa.DataType) -> bool:
    if pt.is_struct(source) and pt.is_struct(target):
        for i in range(target.num_fields):
            field = target.field(i)
            at = position_in(source, field)
            if at == -2 or (at >= 0 and not widens(source.field(at).type, field.type)):
                return False
        return True
    if pt.is_map(source) and pt.is_map(target):
        return widens(source.key_type, target.key_type) and widens(
            source.item_type, target.item_type
        )
    if _is_list(source) and _is_list(target):
        return widens(source.value_type, target.value_type)
    return False


def _is_list(type_: pa.DataType) -> bool:
    return bool(
        pt.is_list(type_)
        or pt.is_large_list(type_)
        or pt.is_fixed_size_list(type_)
        or pt.is_list_view(type_)
        or pt.is_large_list_view(type_)
    )


def _convert_struct(values: pa.Array, target: pa.DataType) -> pa.Array:
    children = []
    for i in range(target.num_fields):
        field = target.field(i)
        at = position_in(values.type, field)
        children.append(
            convert(values.field(at), field.type) if at >= 0 else absent(field, len(values))
        )
    if not children:
        return values.cast(target)
    return pa.StructArray.from_arrays(
        children, fields=list(target), mask=values.is_null() if values.null_count else None
    )


def _convert_list(values: pa.Array, target: pa.DataType) -> pa.Array:
    if not pt.is_list(values.type):
        values = plain_list(values)
    validity, offsets = values.buffers()[:2]
    return pa.Array.from_buffers(
        target,
        len(values),
        [validity, offsets],
        offset=values.offset,
        children=[convert(values.values, target.value_type)],
    )


def plain_list(values: pa.Array) -> pa.Array:
    """Return a large list, a list of fixed size or a view of lists as a list."""
    # Arrow's cast of a view loses what comes after an empty list.
    lengths = np.asarray(pc.fill_null(pc.list_value_length(values), 0))
    return pa.ListArray.from_arrays(
        pa.array(np.concatenate(([0], np.cumsum(lengths))), pa.int32()),
        values.flatten(),
        mask=values.is_null() if values.null_count else None,
    )


def _convert_map(values: pa.Array, target: pa.DataType) -> pa.Array:
    validity, offsets = values.buffers()[:2]
    entries = pa.StructArray.from_arrays(
        [convert(values.keys, target.key_type), convert(values.items, target.item_type)],
        fields=[target.key_field, target.item_field],
    )
    return pa.Array.from_buffers(
        target, len(values), [validity, offsets], offset=values.offset, children=[entries]
    )


def _floor_nanoseconds(values: pa.Array) -> pa.Array:
    # Floor, not truncate: Spark reads an instant before 1970 as the microsecond it lies in.
    nanoseconds = np.asarray(pc.fill_null(values.cast(pa.int64()), 0))
    mask = np.asarray(values.is_null()) if values.null_count else None
    return pa.array(nanoseconds // 1000, pa.timestamp("us", values.type.tz), mask=mask)
