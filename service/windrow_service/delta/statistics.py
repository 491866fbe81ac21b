"""Convert statistics in the log of a Delta table, JSON or structs, to typed bounds of columns.

Bounds are never narrower than the values. Writers cut timestamps to milliseconds, and the distances of
zones from UTC to minutes, write decimals as binary fractions, and end cut strings with a character that
need not be the greatest.
"""

from __future__ import annotations

import io
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from pyarrow import json

from windrow_core.files.arrays import flat, make_struct
from windrow_core.files.bounds import in_order, possible_null_counts
from windrow_core.files.types import has_order
from windrow_service.delta.schemas import Shape

_MILLISECOND_US = 1_000
_MINUTE_US = 60_000_000
# Since 1972-05-01, all zones are whole minutes from UTC.
_WHOLE_MINUTES_SINCE_US = 73_526_400_000_000
# A decimal with at most this many digits is what its nearest binary fraction rounds to.
_EXACT_DIGITS = 15
_ONE_IN = 2.0**-50
# Some Java writers end a cut string with this character; characters beyond it take four bytes.
_CUT_MARK = "�"
_LAST_CHARACTER = "\U0010ffff"
_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_TIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?"
_ZONE = r"(Z|[+-][0-9]{2}:[0-9]{2})$"
# Bounds that are not numbers are useless; inside strings, a backslash precedes each quote.
_NO_NUMBER = r':\s*"(NaN|-?Infinity)"'
# pyarrow would parse a longer text block by block.
_BATCH_BYTES = 2**24


@dataclass(frozen=True, slots=True)
class Statistics:
    """Statistics of n files: `numRecords`, and `stats` of an inventory."""

    row_count: pa.Array
    stats: pa.StructArray


def typed(texts: pa.Array, shape: Shape) -> Statistics:
    """Read statistics from JSON; a text that cannot be read leaves them unknown.

    Args:
        texts: n documents; null or empty if a file has none.
        shape: The table's columns.
    """
    fields = [field for field in shape.data if has_order(field.type)]
    bounds = [
        pa.field(shape.log_names[field.name], _read_as(field.type))
        for field in fields
        if _has_bounds(field, shape)
    ]
    counts = [pa.field(shape.log_names[field.name], pa.int64()) for field in fields]
    schema = pa.schema(
        [
            ("numRecords", pa.int64()),
            ("minValues", pa.struct(bounds)),
            ("maxValues", pa.struct(bounds)),
            ("nullCount", pa.struct(counts)),
        ]
    )
    plain = pc.if_else(pc.equal(pc.fill_null(texts, ""), ""), "{}", texts)
    plain = pc.replace_substring_regex(plain, r"[\r\n]", " ")
    plain = pc.replace_substring_regex(plain, _NO_NUMBER, ":null")
    tables = [schema.empty_table(), *_parsed(flat(plain), schema)]
    parsed = pa.concat_tables(tables)
    columns = [flat(column) for column in parsed.columns]
    struct = make_struct(columns, list(schema), len(texts))
    return of_struct(struct, shape, len(texts))


def _parsed(texts: pa.Array, schema: pa.Schema) -> list[pa.Table]:
    """Parse one document per text; a text that is not a document gives nulls."""
    if not len(texts):
        return []
    size = pc.sum(pc.binary_length(texts)).as_py()
    if size <= _BATCH_BYTES or len(texts) == 1:
        table = _read(texts, schema, size)
        if table is not None and len(table) == len(texts):
            return [table]
    if len(texts) == 1:
        nothing = [pa.nulls(1, field.type) for field in schema]
        return [pa.table(nothing, schema=schema)]
    half = len(texts) // 2
    return _parsed(texts.slice(0, half), schema) + _parsed(texts.slice(half), schema)


def _read(texts: pa.Array, schema: pa.Schema, size: int) -> pa.Table | None:
    lines = pc.binary_join(pa.ListArray.from_arrays([0, len(texts)], texts), "\n")[0]
    try:
        table = json.read_json(
            io.BytesIO(lines.as_buffer()),
            read_options=json.ReadOptions(use_threads=False, block_size=size + len(texts) + 1),
            parse_options=json.ParseOptions(
                explicit_schema=schema, unexpected_field_behavior="ignore"
            ),
        )
        return table.select(schema.names).cast(schema)
    except (pa.ArrowException, ValueError):
        return None


def _read_as(type_: pa.DataType) -> pa.DataType:
    if pt.is_decimal(type_):
        return pa.float64()
    return pa.string() if pt.is_temporal(type_) else type_


def of_struct(parsed: pa.StructArray, shape: Shape, count: int) -> Statistics:
    """Read statistics from structs, which checkpoints may hold; values that do not fit are unknown.

    Args:
        parsed: n structs with `numRecords`, `minValues`, `maxValues` and `nullCount`, or some of them.
        shape: The table's columns.
        count: n.
    """
    least, greatest = _child(parsed, "minValues"), _child(parsed, "maxValues")
    nulls = _child(parsed, "nullCount")
    row_counts = _counts(_child(parsed, "numRecords"), count)
    columns, fields = [], []
    for field in shape.data:
        if not has_order(field.type):
            continue
        name = shape.log_names[field.name]
        bounds = [pa.nulls(count, field.type)] * 2
        if _has_bounds(field, shape):
            bounds = [
                _bounds(_child(least, name), field.type, count, upper=False),
                _bounds(_child(greatest, name), field.type, count, upper=True),
            ]
        lower, upper, _ = in_order(*bounds)
        null_counts = possible_null_counts(
            lower, upper, _counts(_child(nulls, name), count), row_counts
        )
        parts = [lower, upper, null_counts]
        kinds = [("min", field.type), ("max", field.type), ("null_count", pa.int64())]
        columns.append(make_struct(parts, [pa.field(*kind) for kind in kinds], count))
        fields.append(pa.field(field.name, columns[-1].type))
    return Statistics(row_counts, make_struct(columns, fields, count))


def _has_bounds(field: pa.Field, shape: Shape) -> bool:
    # Fractions that were written with fewer bits have fewer digits in the log.
    is_coarse = pt.is_floating(field.type) and field.name.lower() in shape.widened
    return not pt.is_binary(field.type) and not is_coarse


def _child(parent: pa.Array | None, name: str) -> pa.Array | None:
    if parent is None or not pt.is_struct(parent.type):
        return None
    at = parent.type.get_field_index(name)
    # `struct_field` includes the nulls of the struct itself.
    return pc.struct_field(parent, at) if at >= 0 else None


def _counts(values: pa.Array | None, count: int) -> pa.Array:
    if values is None or not pt.is_integer(values.type):
        return pa.nulls(count, pa.int64())
    counts = pc.cast(values, pa.int64(), safe=False)
    return pc.if_else(pc.greater_equal(counts, 0), counts, pa.scalar(None, pa.int64()))


def _bounds(values: pa.Array | None, type_: pa.DataType, count: int, *, upper: bool) -> pa.Array:
    nothing = pa.nulls(count, type_)
    if values is None or pt.is_nested(values.type):
        return nothing
    try:
        if pt.is_decimal(type_):
            return _decimals(values, type_, upper=upper)
        if pt.is_timestamp(type_):
            return _timestamps(values, type_, upper=upper)
        if pt.is_date(type_) and pt.is_string(values.type):
            values = _matching(values, _DATE)
        if pt.is_string(type_) and upper:
            return pc.replace_substring_regex(values, _CUT_MARK + "$", _LAST_CHARACTER)
        if pt.is_floating(type_):
            is_number = pc.is_finite(pc.cast(values, pa.float64()))
            values = pc.if_else(is_number, values, pa.scalar(None, values.type))
        return pc.cast(values, type_)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
        return nothing


def _matching(texts: pa.Array, pattern: str) -> pa.Array:
    matches = pc.match_substring_regex(texts, pattern)
    return pc.if_else(matches, texts, pa.scalar(None, texts.type))


def _timestamps(values: pa.Array, type_: pa.DataType, *, upper: bool) -> pa.Array:
    if pt.is_string(values.type):
        values = _matching(values, _TIME + (_ZONE if type_.tz else "$"))
    elif not pt.is_timestamp(values.type) or (values.type.tz is None) != (type_.tz is None):
        return pa.nulls(len(values), type_)
    moments = pc.cast(pc.cast(values, type_, safe=False), pa.int64())
    # Writers cut off fractions of a millisecond, perhaps towards 1970.
    slack = pa.scalar(_MILLISECOND_US)
    if type_.tz:
        is_old = pc.less(moments, _WHOLE_MINUTES_SINCE_US + _MINUTE_US)
        slack = pc.if_else(is_old, _MINUTE_US, slack)
    return pc.cast((pc.add_checked if upper else pc.subtract_checked)(moments, slack), type_)


def _decimals(values: pa.Array, type_: pa.DataType, *, upper: bool) -> pa.Array:
    if pt.is_decimal(values.type) or pt.is_integer(values.type):
        return pc.cast(values, type_)
    numbers = np.asarray(pc.cast(values, pa.float64()).fill_null(np.nan))
    if type_.precision > _EXACT_DIGITS:
        slack = np.abs(numbers) * _ONE_IN + 10.0**-type_.scale
        numbers = numbers + slack if upper else numbers - slack
    # A bound outside the range of the type is useless.
    limit = 10.0 ** (type_.precision - type_.scale)
    fits = np.abs(numbers) < limit * (1 - 2.0**-40) - 10.0**-type_.scale
    return pc.cast(pa.array(numbers, mask=~fits), type_)
