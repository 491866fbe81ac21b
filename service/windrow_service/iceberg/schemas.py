"""Iceberg's schemas as columns, with the types that Spark reads."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyiceberg import types
from pyiceberg.schema import Schema
from pyiceberg.table.name_mapping import MappedField

from windrow_core.files.file_fields import DEFAULT, FIELD_ID, NAMES_IN_FILES, absent
from windrow_core.files.limits import MAX_LEVELS, refuse_deep
from windrow_core.files.types import MAX_DECIMAL_PRECISION, arrow_types

_PRIMITIVES = arrow_types("iceberg")


class UnreadTypeError(ValueError):
    """A column has a type that Windrow does not read."""


def arrow_schema(
    schema: Schema, as_json: Mapping[str, Any], mapping: list[MappedField]
) -> pa.Schema:
    """Return the columns of a schema; the metadata of fields says how files are read.

    Args:
        schema: The schema.
        as_json: The same schema, as the metadata states it.
        mapping: The names by which columns are found in files without field ids.

    Raises:
        UnreadTypeError: A column has a type that Windrow does not read.
    """
    return pa.schema(list(_Fields(_defaults(as_json, 0)).of(schema.fields, mapping, "", 0)))


def _defaults(as_json: Any, depth: int) -> dict[int, Any]:
    """Return initial defaults by field id, as the metadata states them."""
    defaults: dict[int, Any] = {}
    if depth > MAX_LEVELS or not isinstance(as_json, Mapping):
        return defaults
    for name in ("element", "key", "value"):
        defaults |= _defaults(as_json.get(name), depth + 1)
    for one in as_json.get("fields") or ():
        if one.get("initial-default") is not None:
            defaults[one["id"]] = one["initial-default"]
        defaults |= _defaults(one.get("type"), depth + 1)
    return defaults


@dataclass(frozen=True, slots=True)
class _Fields:
    """Converts fields to Arrow."""

    defaults: Mapping[int, Any] = field(default_factory=dict)

    def of(
        self,
        fields: tuple[types.NestedField, ...],
        mapping: list[MappedField],
        within: str,
        depth: int,
    ) -> list[pa.Field]:
        refuse_deep(depth)
        names_by_id = {one.field_id: one for one in mapping}
        return [self._field(one, names_by_id.get(one.field_id), within, depth) for one in fields]

    def _field(
        self, one: types.NestedField, names_here: MappedField | None, within: str, depth: int
    ) -> pa.Field:
        name = f"{within}.{one.name}" if within else one.name
        metadata = {FIELD_ID: str(one.field_id).encode()}
        if names_here is not None:
            metadata[NAMES_IN_FILES] = json.dumps(names_here.names).encode()
        if one.field_id in self.defaults:
            metadata[DEFAULT] = json.dumps(self.defaults[one.field_id]).encode()
        inner = names_here.fields if names_here is not None else []
        arrow = pa.field(
            one.name, self._type(one.field_type, inner, name, depth + 1), metadata=metadata
        )
        try:
            absent(arrow, 0)
        except (pa.ArrowException, ArithmeticError, TypeError, ValueError) as error:
            raise UnreadTypeError(
                f"the initial default of column {name!r} is not a value of type {one.field_type}: "
                "restore the metadata"
            ) from error
        return arrow

    def _type(
        self, type_: types.IcebergType, mapping: list[MappedField], name: str, depth: int
    ) -> pa.DataType:
        if isinstance(type_, types.StructType):
            return pa.struct(self.of(type_.fields, mapping, name, depth))
        if isinstance(type_, types.ListType):
            (element,) = self.of((type_.element_field,), mapping, name, depth)
            return pa.list_(element)
        if isinstance(type_, types.MapType):
            key, value = self.of((type_.key_field, type_.value_field), mapping, name, depth)
            return pa.map_(key.with_nullable(False), value)
        if isinstance(type_, types.DecimalType) and type_.precision <= MAX_DECIMAL_PRECISION:
            return pa.decimal128(type_.precision, type_.scale)
        plain = _PRIMITIVES.get(type(type_).__name__)
        if plain is None:
            raise UnreadTypeError(
                f"column {name!r} has Iceberg's type {type_}, which Windrow cannot read: drop it, "
                "or keep its values in a column of another type"
            )
        return plain
