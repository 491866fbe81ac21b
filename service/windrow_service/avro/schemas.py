"""Avro schemas as columns, with the types in which Spark reads them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeGuard

import pyarrow as pa

from windrow_core.files.limits import MAX_FIELDS, refuse_deep, refuse_wide
from windrow_core.files.types import MAX_DECIMAL_PRECISION, arrow_types

# A logical type follows the only type that it applies to; Avro ignores it on others.
_TYPES = arrow_types("avro")
_PRIMITIVES = {name: type_ for name, type_ in _TYPES.items() if " " not in name}
_NAMELESS = {*_PRIMITIVES, "array", "map"}
# Versions of Spark read these differently.
_UNSURE = {
    ("long", "timestamp-nanos"),
    ("long", "local-timestamp-nanos"),
    ("long", "time-micros"),
}
# The property in which Spark records a type that Avro lacks.
_CATALYST = "spark.sql.catalyst.type"
_NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


class AvroSchemaError(ValueError):
    """A schema does not describe columns that can be read."""


def avro_columns(text: bytes, max_fields: int = MAX_FIELDS) -> pa.Schema:
    """Return the columns that Spark reads from files with a schema.

    Args:
        text: The schema as JSON.
        max_fields: Most fields that are read, those of types that are used by name each time.

    Raises:
        AvroSchemaError: The text is not a schema, or its columns cannot be read.
        TooWideError: It has more fields or levels than are read.
    """
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise AvroSchemaError("its schema is damaged: it is not JSON") from error
    reader = _Reader()
    type_ = reader.type_of(parsed, "", 0)
    # The first one is the table.
    refuse_wide(reader.fields - 1, max_fields)
    if not pa.types.is_struct(type_):
        raise AvroSchemaError(f"its schema is of {type_}, not of a record, so it has no columns")
    return pa.schema(list(type_))


class _Named(NamedTuple):
    """A type with a name; how many fields it is, and how many levels are below it."""

    type: pa.DataType
    fields: int
    levels: int


class _Reader:
    """Reads one schema, in which types may be used again by name.

    Attributes:
        fields: How many there are. A record that has another one twice, which has a third one twice,
            and so on, has a great many in a short text.
    """

    def __init__(self) -> None:
        # None while a record is being read.
        self._named: dict[str, _Named | None] = {}
        self.fields = self._deepest = 0

    def _count(self, fields: int, depth: int) -> None:
        self.fields += fields
        self._deepest = max(self._deepest, depth)
        refuse_deep(depth)

    def type_of(self, schema: Any, space: str, depth: int) -> pa.DataType:
        if isinstance(schema, str):
            return self._by_name(schema, space, depth)
        if isinstance(schema, list):
            return self._union(schema, space, depth)
        if not isinstance(schema, Mapping) or not isinstance(schema.get("type"), str):
            raise AvroSchemaError("its schema is damaged: a type is missing in it")
        kind = schema["type"]
        if kind in ("record", "error"):
            return self._record(schema, space, depth)
        if kind == "enum":
            return self._leaf(schema, space, pa.string(), depth)
        if kind == "fixed":
            return self._leaf(schema, space, _decimal_of(schema) or pa.binary(), depth)
        if kind == "array":
            self._count(1, depth)
            return pa.list_(self.type_of(schema.get("items"), space, depth + 1))
        if kind == "map":
            self._count(1, depth)
            return pa.map_(pa.string(), self.type_of(schema.get("values"), space, depth + 1))
        if kind not in _PRIMITIVES:
            return self._by_name(kind, space, depth)
        self._count(1, depth)
        if _CATALYST in schema:
            raise AvroSchemaError(f"it holds Spark's type {schema[_CATALYST]}, which is not read")
        logical = schema.get("logicalType")
        if kind == "bytes" and logical == "decimal":
            return _decimal_of(schema) or pa.binary()
        if (kind, logical) in _UNSURE and f"{kind} {logical}" not in _TYPES:
            raise AvroSchemaError(f"it holds values of {logical}, which are not read")
        return _TYPES.get(f"{kind} {logical}", _TYPES[kind])

    def _by_name(self, name: str, space: str, depth: int) -> pa.DataType:
        if name in _PRIMITIVES:
            self._count(1, depth)
            return _PRIMITIVES[name]
        full = name if "." in name or not space else f"{space}.{name}"
        if full not in self._named:
            raise AvroSchemaError(f"its schema uses type {name!r}, and does not define it")
        again = self._named[full]
        if again is None:
            raise AvroSchemaError(f"it holds records of {name!r} nested in each other without end")
        self._count(again.fields, depth + again.levels)
        return again.type

    def _leaf(
        self, schema: Mapping[str, Any], space: str, type_: pa.DataType, depth: int
    ) -> pa.DataType:
        self._define(schema, space, _Named(type_, fields=1, levels=0))
        self._count(1, depth)
        return type_

    def _define(self, schema: Mapping[str, Any], space: str, type_: _Named | None) -> str:
        name, namespace = schema.get("name"), schema.get("namespace")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise AvroSchemaError("its schema is damaged: a type has no name")
        if "." not in name:
            space = namespace if isinstance(namespace, str) else space
            name = f"{space}.{name}" if space else name
        self._named[name] = type_
        return name

    def _record(self, schema: Mapping[str, Any], space: str, depth: int) -> pa.DataType:
        name = self._define(schema, space, None)
        fields = schema.get("fields")
        if not isinstance(fields, list):
            raise AvroSchemaError("its schema is damaged: a record has no fields")
        within = name.rpartition(".")[0]
        before, deepest = self.fields, self._deepest
        self._deepest = depth
        self._count(1, depth)
        columns = []
        for field in fields:
            if not isinstance(field, Mapping) or not isinstance(field.get("name"), str):
                raise AvroSchemaError("its schema is damaged: a field has no name")
            columns.append(
                pa.field(field["name"], self.type_of(field.get("type"), within, depth + 1))
            )
        type_ = pa.struct(columns)
        self._named[name] = _Named(type_, self.fields - before, self._deepest - depth)
        self._deepest = max(self._deepest, deepest)
        return type_

    def _union(self, schemas: list[Any], space: str, depth: int) -> pa.DataType:
        """Return what Spark reads: nulls do not count, numbers widen, other types become fields."""
        members = [one for one in schemas if _kind(one) != "null"]
        if any(isinstance(one, list) for one in members):
            raise AvroSchemaError("its schema is damaged: a union is within a union")
        nameless = [kind for kind in map(_kind, schemas) if kind in _NAMELESS]
        if len(nameless) > len(set(nameless)):
            raise AvroSchemaError("its schema is damaged: a type appears twice in a union")
        types = [self.type_of(one, space, depth) for one in members]
        if len(types) == 1:
            return types[0]
        kinds = {_kind(one) for one in members}
        for both, wider in (({"int", "long"}, pa.int64()), ({"float", "double"}, pa.float64())):
            if kinds == both:
                return wider
        return pa.struct([(f"member{number}", type_) for number, type_ in enumerate(types)])


def _kind(schema: Any) -> str:
    """Return the name of a schema's type; empty if it is not a type."""
    while isinstance(schema, Mapping):
        schema = schema.get("type")
    return schema if isinstance(schema, str) else ""


def _decimal_of(schema: Mapping[str, Any]) -> pa.DataType | None:
    """Return the decimal type that bytes encode; None if Avro does not read them as a decimal."""
    precision, scale = schema.get("precision"), schema.get("scale", 0)
    if schema.get("logicalType") != "decimal" or not _is_whole(precision) or not _is_whole(scale):
        return None
    if precision <= 0 or not 0 <= scale <= precision:
        return None
    size = schema.get("size")
    if schema["type"] == "fixed" and _is_whole(size) and precision > _digits_in(size):
        return None
    if precision > MAX_DECIMAL_PRECISION:
        raise AvroSchemaError(
            f"it holds decimals of {precision} digits, and Spark has at most {MAX_DECIMAL_PRECISION}"
        )
    return pa.decimal128(precision, scale)


def _is_whole(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _digits_in(size: int) -> int:
    """Return how many decimal digits always fit in a number of bytes."""
    return len(str(2 ** (8 * min(size, 64) - 1) - 1)) - 1 if size > 0 else 0
