"""Layouts: how the columns of a Parquet file are stored, for readers other than Windrow's and Spark's.

Such readers find columns by the spelling of their names, or by ids in the footer, and some read
some types in their own way. Files of one writer have one layout.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.types as pt

from windrow_core.files.calendars import DATETIME_MARK, DATETIMES_MARKED_SINCE, VERSION
from windrow_core.files.excerpts.thrift import BINARY, INT, LIST, STRUCT, Skimmer, ThriftError
from windrow_core.files.schema import fields_in

# A longer layout is not kept: 5,000 columns of usual names take a tenth.
MAX_LAYOUT_CHARACTERS = 2**21
# Of files whose layout is too long.
UNDESCRIBED = "{}"
INT96 = "int96"
_NESTED = (["struct"], ["list"], ["map"])
_OPTIONAL = {"field_ids", "shapes", "miscounts"}

_OLD_INT96_MARK = b"org.apache.spark.legacyINT96"
_FIELD_ID = b"PARQUET:field_id"

# A type's name in Arrow; or `struct`, `list` or `map`, followed by names and types.
StoredType: TypeAlias = str | list[Any]
# A field's id or None, and the same of the fields within it.
FieldIds: TypeAlias = list[Any]
# A field's name, repetition and annotation, and the same of the fields that it has in the file's own
# schema, which has more levels than a list or map.
Shape: TypeAlias = list[Any]
REPETITIONS = ("required", "optional", "repeated")
REPEATED = REPETITIONS[2]
# Old annotations, by their numbers; others count as none.
_ANNOTATIONS = {1: "map", 2: "map_key_value", 3: "list"}
# Of a group that has only the new annotation of a list or map.
_LOGICAL = "logical"
# Fields of Parquet's FileMetaData, SchemaElement and LogicalType.
_SCHEMA = 2
_REPETITION, _NAME, _CHILDREN, _OLD_ANNOTATION, _ANNOTATION = 3, 4, 5, 6, 10
_OF_NESTED = (2, 3)


@dataclass(frozen=True, slots=True)
class Layout:
    """How the columns of a file are stored.

    Attributes:
        columns: The type of each top-level column, by its name as the file spells it.
        has_ids: Whether any column has a field id.
        is_old: Whether the footer says that dates or times are in the calendar before Gregory's.
        has_duplicates: Whether two columns have the same name.
        ids: For each column, its field id or None, and the same of the fields within it; empty if no
            column has an id, or they are not known.
        shapes: How the file's own schema has each column that is no plain one; None if that is not
            known.
        miscounts: Whether the footer states another number of rows than its row groups.
    """

    columns: Mapping[str, StoredType]
    has_ids: bool
    is_old: bool
    has_duplicates: bool
    ids: Mapping[str, FieldIds]
    shapes: Mapping[str, Shape] | None
    miscounts: bool

    @classmethod
    def of_text(cls, text: str) -> Layout | None:
        """Return a layout from its text; None if it was too long to be kept."""
        parts = json.loads(text)
        if not parts:
            return None
        columns = dict(parts["columns"])
        ids = dict(zip(columns, parts.get("field_ids", ()), strict=False))
        shapes = parts.get("shapes")
        return cls(
            columns,
            parts["ids"],
            parts["old"],
            len(columns) < len(parts["columns"]),
            ids,
            None if shapes is None else {shape[0]: shape for shape in shapes},
            "miscounts" in parts,
        )


def is_layout(text: str) -> bool:
    """Return whether a text is like those that `Layouts` writes."""
    if len(text) > MAX_LAYOUT_CHARACTERS:
        return False
    try:
        parts = json.loads(text)
        # Half a character is text to JSON, and to nothing else.
        json.dumps(parts, ensure_ascii=False).encode()
        return isinstance(parts, dict) and (
            not parts
            or (
                parts.keys() - _OPTIONAL == {"columns", "ids", "old"}
                and isinstance(parts["ids"], bool)
                and isinstance(parts["old"], bool)
                and _are_columns(parts["columns"])
                and ("field_ids" not in parts or _are_ids(parts["field_ids"], parts["columns"]))
                and _are_shapes(parts.get("shapes", []))
                and parts.get("miscounts", True) is True
            )
        )
    except (ValueError, RecursionError):
        return False


def _are_columns(columns: Any) -> bool:
    return isinstance(columns, list) and all(
        isinstance(one, list) and len(one) == 2 and isinstance(one[0], str) and _is_type(one[1])
        for one in columns
    )


def _are_ids(ids: Any, columns: list[Any]) -> bool:
    """Return whether there is an id, or None, for each of some columns and for what lies in it."""
    if not isinstance(ids, list) or len(ids) != len(columns):
        return False
    return all(
        isinstance(one, list)
        and len(one) == 2
        and (one[0] is None or type(one[0]) is int)
        and _are_ids(one[1], [] if isinstance(type_, str) else type_[1:])
        for one, (_, type_) in zip(ids, columns, strict=True)
    )


def _are_shapes(shapes: Any) -> bool:
    return isinstance(shapes, list) and all(
        isinstance(one, list)
        and len(one) >= 3
        and isinstance(one[0], str)
        and one[1] in REPETITIONS
        and one[2] in ("", _LOGICAL, *_ANNOTATIONS.values())
        and _are_shapes(one[3:])
        for one in shapes
    )


def _is_type(type_: Any) -> bool:
    if isinstance(type_, str):
        return True
    return isinstance(type_, list) and type_[:1] in _NESTED and _are_columns(type_[1:])


class Layouts:
    """Describes files of one Parquet schema.

    Args:
        parquet: The schema, as a `pyarrow.parquet.ParquetSchema`.
        footer: The footer of one of the files.
    """

    def __init__(self, parquet: Any, footer: bytes) -> None:
        leaves = iter(range(len(parquet.names)))
        arrow = parquet.to_arrow_schema()
        self._columns = [[field.name, _stored(field.type, parquet, leaves)] for field in arrow]
        self._ids = _ids_of(arrow) if any(map(_has_id, arrow)) else None
        self._shapes = _shapes_in(footer)
        self._texts: dict[tuple[bool, bool], str] = {}

    def of(self, metadata: Mapping[bytes, bytes] | None, *, miscounts: bool) -> str:
        """Return the layout of a file as text.

        Args:
            metadata: The footer's key-value metadata.
            miscounts: Whether the footer states another number of rows than its row groups.
        """
        key = is_old, _ = _is_old(metadata or {}), miscounts
        if key not in self._texts:
            has_ids = self._ids is not None
            parts = {"columns": self._columns, "ids": has_ids, "old": is_old}
            if has_ids:
                parts["field_ids"] = self._ids
            if self._shapes is not None:
                parts["shapes"] = self._shapes
            if miscounts:
                parts["miscounts"] = True
            text = json.dumps(parts, separators=(",", ":"))
            self._texts[key] = text if len(text) <= MAX_LAYOUT_CHARACTERS else UNDESCRIBED
        return self._texts[key]


def _shapes_in(footer: bytes) -> list[Shape] | None:
    """Return the shapes of the columns that are no plain ones; None if they cannot be told."""
    skimmer = Skimmer(footer)
    try:
        for number, kind in skimmer.fields():
            if (number, kind) == (_SCHEMA, LIST):
                elements = [_element(skimmer) for _ in range(skimmer.listed()[0])]
                _, _, _, *columns = _shape(iter(elements))
                return [one for one in columns if len(one) > 3 or one[1] == REPEATED]
            skimmer.skip(kind)
    except (ThriftError, StopIteration, LookupError):
        pass
    return None


def _element(skimmer: Skimmer) -> tuple[Shape, int]:
    """Take an element of a schema: its shape, still without children, and the number of these."""
    name, repetition, old, new, count = b"", 0, None, False, 0
    for number, kind in skimmer.fields():
        if (number, kind) == (_NAME, BINARY):
            name = skimmer.text()
        elif (number, kind) == (_REPETITION, INT):
            repetition = skimmer.integer()
        elif (number, kind) == (_CHILDREN, INT):
            count = skimmer.integer()
        elif (number, kind) == (_OLD_ANNOTATION, INT):
            old = _ANNOTATIONS.get(skimmer.integer())
        elif (number, kind) == (_ANNOTATION, STRUCT):
            for option, of in skimmer.fields():
                new = new or option in _OF_NESTED
                skimmer.skip(of)
        else:
            skimmer.skip(kind)
    text = name.decode(errors="replace")
    return [text, REPETITIONS[repetition], old or (_LOGICAL if new else "")], count


def _shape(elements: Iterator[tuple[Shape, int]]) -> Shape:
    own, count = next(elements)
    return [*own, *(_shape(elements) for _ in range(count))]


def _is_old(metadata: Mapping[bytes, bytes]) -> bool:
    version = metadata.get(VERSION)
    is_spark_2 = version is not None and version < DATETIMES_MARKED_SINCE
    return is_spark_2 or DATETIME_MARK in metadata or _OLD_INT96_MARK in metadata


def _storage_of(type_: pa.DataType) -> pa.DataType:
    return type_.storage_type if isinstance(type_, pa.BaseExtensionType) else type_


def _ids_of(fields: Iterable[pa.Field]) -> list[FieldIds]:
    return [
        [
            int(field.metadata[_FIELD_ID]) if _FIELD_ID in (field.metadata or {}) else None,
            _ids_of(fields_in(_storage_of(field.type))),
        ]
        for field in fields
    ]


def _has_id(field: pa.Field) -> bool:
    return _FIELD_ID in (field.metadata or {}) or any(map(_has_id, fields_in(field.type)))


def _stored(type_: pa.DataType, parquet: Any, leaves: Iterator[int]) -> StoredType:
    type_ = _storage_of(type_)
    if not pt.is_nested(type_):
        return INT96 if parquet.column(next(leaves)).physical_type == "INT96" else str(type_)
    kind = "struct" if pt.is_struct(type_) else "map" if pt.is_map(type_) else "list"
    fields = fields_in(type_)
    return [kind, *([field.name, _stored(field.type, parquet, leaves)] for field in fields)]
