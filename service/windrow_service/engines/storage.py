"""What other engines need to find in files, so that they read the table's own values from them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.types as pt

from windrow_core.files.calendars import has_calendar
from windrow_core.files.file_fields import column_id, name_in_files
from windrow_core.files.layouts import INT96, FieldIds, Layout, StoredType
from windrow_core.files.schema import fields_in
from windrow_core.files.types import TIMESTAMP, TIMESTAMP_NTZ
from windrow_service.engines.clients import DUCKDB, ICEBERGS_JAVA, POLARS, PYICEBERG
from windrow_service.engines.columns import NameTree, TableColumns
from windrow_service.engines.shapes import Shapes

_SMALL = ("int8", "int16", "int32")
# For each type, the types in files that every engine turns into it.
_STORED: Mapping[pa.DataType, tuple[str, ...]] = {
    pa.bool_(): ("bool",),
    pa.int8(): _SMALL,
    pa.int16(): (*_SMALL, "uint8"),
    pa.int32(): (*_SMALL, "uint8", "uint16"),
    pa.int64(): (*_SMALL, "uint8", "uint16", "uint32", "int64"),
    pa.float32(): ("float",),
    pa.float64(): ("float", "double"),
    # Notes in footers say as what Arrow's writers had the same bytes.
    pa.string(): ("string", "large_string", "string_view"),
    pa.binary(): ("binary", "large_binary", "binary_view"),
    pa.date32(): ("date32[day]",),
    TIMESTAMP: ("timestamp[us, tz=UTC]", "timestamp[ms, tz=UTC]", INT96),
    TIMESTAMP_NTZ: ("timestamp[us]", "timestamp[ms]"),
}
_DECIMAL = re.compile(r"decimal128\(([0-9]+), ([0-9]+)\)")
_END_MAPPING = (
    "end the mapping (`delta.columnMapping.mode` = `none`, which rewrites the files), or read the "
    "table with Windrow's client"
)
REWRITE = "rewrite these files with Spark, or read the table with Windrow's client"
_MS = "milliseconds, which Spark with Iceberg's runtime reads as microseconds, and this client may be its"
# No footer says which times INT96 has: its bounds, if any, follow no order that is agreed upon.
_LONG_TIMES = (
    "is stored as INT96, which PyIceberg and Polars read wrongly before 1677 or after 2262: rewrite these "
    "files with Spark and `spark.sql.parquet.outputTimestampType` = `TIMESTAMP_MICROS`, or read the "
    "table with Windrow's client or DuckDB"
)
_MISCOUNTS = (
    "its footer states another number of rows than its row groups have, which Polars believes, and "
    "this client may be its"
)
_REMEDIES = {
    DUCKDB: f"{REWRITE} or another engine",
    ICEBERGS_JAVA: (
        "rewrite these files with Spark, or read the table with Windrow's catalog on Spark, or with "
        "DuckDB, Polars, PyIceberg or Sail"
    ),
    POLARS: f"{REWRITE} or DuckDB",
    PYICEBERG: (
        "read the table with Windrow's client, DuckDB or Polars, the latter by the lines that `windrow "
        "engines` prints for it"
    ),
}


@dataclass(frozen=True, slots=True)
class Stored:
    """What a layout means for a table.

    Attributes:
        spellings: How the files spell the table's columns, by their names in lower case.
        old: The table's columns that may hold dates or times in the calendar before Gregory's.
        trouble: Why other engines would read other values, and what to do; None if they do not.
        unfit: For each reader that would fail, or read other values, why, and what to do.
        inner: How the files call what lies in lists and maps; see `InnerNames`.
        within: What lies in columns that the table lacks, by their names in lower case.
    """

    spellings: Mapping[str, str]
    old: Sequence[pa.Field]
    trouble: str | None
    unfit: Mapping[str, str]
    inner: Mapping[str, str]
    within: NameTree


def stored(text: str | None, columns: TableColumns) -> Stored:
    """Return what a layout means for a table.

    Args:
        text: The layout; None if it is not known.
        columns: The table's columns.
    """
    layout = None if text is None else Layout.of_text(text)
    if layout is None:
        return Stored(
            {},
            (),
            "the inventory does not say how its columns are stored: refresh the table; if you "
            "published its inventory, delete the table first and register it again",
            {},
            {},
            {},
        )
    spellings = {name.lower(): name for name in layout.columns}
    own = {name_in_files(field).lower() for field in columns.data}
    within = {
        name: _names_in(layout.columns[spelling])
        for name, spelling in spellings.items()
        if name not in own
    }
    old = [
        field
        for field in columns.data
        if layout.is_old and name_in_files(field).lower() in spellings and _may_be_old(field.type)
    ]
    trouble = _trouble(layout, spellings, columns)
    within = {name: one for name, one in within.items() if one}
    shapes = Shapes()
    if trouble is None:
        _look(layout, columns, shapes)
    unfit = {reader: f"{why}: {_REMEDIES[reader]}" for reader, why in shapes.unfit.items()}
    if trouble is None:
        unfit |= _unfit_for_times(layout, columns)
    return Stored(spellings, old, trouble, unfit, shapes.names, within)


def _look(layout: Layout, columns: TableColumns, shapes: Shapes) -> None:
    """Find out which readers would misread the columns, and how the file calls what lies in them."""
    by_name = {name_in_files(field).lower(): field for field in columns.data}
    for name, own in layout.columns.items():
        field = by_name.get(name.lower())
        shape = (layout.shapes or {}).get(name)
        column, type_ = (name, None) if field is None else (field.name, field.type)
        if not isinstance(own, str):
            shapes.add(column, own, shape, type_)
        if field is not None and _has_type(own, "timestamp[ms"):
            shapes.unfit.setdefault(ICEBERGS_JAVA, f"column {column!r} is stored in {_MS}")
    if layout.miscounts:
        # Polars does not say that it is behind PyIceberg's client unless its user has it say so.
        for reader in (POLARS, PYICEBERG):
            shapes.unfit[reader] = _MISCOUNTS


def _unfit_for_times(layout: Layout, columns: TableColumns) -> dict[str, str]:
    """Return for each reader that takes INT96 for nanoseconds which column has it, and what to do."""
    names = {name_in_files(field).lower() for field in columns.data}
    for name, own in layout.columns.items():
        if name.lower() in names and _has_type(own, INT96):
            return dict.fromkeys((POLARS, PYICEBERG), f"column {name!r} {_LONG_TIMES}")
    return {}


def _names_in(own: StoredType) -> NameTree:
    if isinstance(own, str):
        return {}
    kind, *children = own
    # What a file calls elements, engines do not care about.
    names = {"list": ["element"], "map": ["key", "value"]}.get(kind, [name for name, _ in children])
    return {name: _names_in(type_) for name, (_, type_) in zip(names, children, strict=True)}


def _trouble(layout: Layout, spellings: Mapping[str, str], columns: TableColumns) -> str | None:
    if layout.has_ids and not columns.names:
        return f"it has field ids, by which engines find columns whatever their names: {REWRITE}"
    if layout.has_duplicates or len(spellings) < len(layout.columns):
        return f"it has two columns whose names differ by case at most: {REWRITE}"
    for field in columns.partition:
        if field.name.lower() in spellings:
            return (
                f"it also holds the partition column {field.name!r}, which engines would take from "
                f"the file and not from the folder: {REWRITE}"
            )
    if columns.names:
        trouble = _mapping_trouble(layout, spellings, columns)
        if trouble is not None:
            return trouble
    for field in columns.data:
        spelling = spellings.get(name_in_files(field).lower())
        if spelling is None:
            continue
        if layout.shapes is None and pt.is_nested(field.type):
            return (
                f"the inventory does not say how the lists and maps of column {spelling!r} are stored: "
                "refresh the table"
            )
        own = layout.columns[spelling]
        if not _reads_as(own, field.type):
            return (
                f"column {spelling!r} is stored as {_words(own)}, which engines read in different ways, "
                f"or not as the table's {field.type}: {REWRITE}"
            )
    return None


def _mapping_trouble(
    layout: Layout, spellings: Mapping[str, str], columns: TableColumns
) -> str | None:
    """Return why Delta's column mapping would not find the columns of files by both names and ids."""
    by_name = {name_in_files(field): field for field in columns.data}
    for name in by_name:
        spelling = spellings.get(name.lower(), name)
        if spelling != name:
            return (
                f"column {spelling!r} is called {name!r} by Delta's column mapping, and some engines "
                f"do not tell the two apart: {_END_MAPPING}"
            )
    if not layout.has_ids:
        return None
    if not layout.ids:
        return f"its field ids are not known: {_END_MAPPING}"
    all_ids = columns.all_ids
    for name, type_ in layout.columns.items():
        field = by_name.get(name)
        if field is not None and not _has_no_lists(type_):
            return (
                f"column {name!r} has lists or maps, whose elements have no field ids in Delta's column "
                f"mapping, and engines find columns of this file by ids: {_END_MAPPING}"
            )
        if not _agree(type_, layout.ids[name], field, all_ids):
            return (
                f"column {name!r} has other field ids than Delta's column mapping has for this name, or "
                f"none, and engines find columns of this file by ids: {_END_MAPPING}"
            )
    return None


def _has_no_lists(own: StoredType) -> bool:
    if isinstance(own, str):
        return True
    kind, *children = own
    return kind == "struct" and all(_has_no_lists(type_) for _, type_ in children)


def _agree(
    own: StoredType, ids: FieldIds, field: pa.Field | None, all_ids: Collection[int]
) -> bool:
    """Return whether a column of a file without lists has the ids of the table's column of its name.

    Columns that the table lacks must not have the id of another one, at any depth.
    """
    number, within = ids
    if field is None:
        return number not in all_ids and all(_agree("", one, None, all_ids) for one in within)
    if number is None or number != column_id(field):
        return False
    if isinstance(own, str):
        return True
    _, *children = own
    by_name = {name_in_files(one): one for one in fields_in(field.type)}
    return all(
        _agree(type_, one, by_name.get(child), all_ids)
        for (child, type_), one in zip(children, within, strict=True)
    )


def _has_type(own: StoredType, beginning: str) -> bool:
    """Return whether a type, or one within it, has a name that begins so."""
    if isinstance(own, str):
        return own.startswith(beginning)
    return any(_has_type(child, beginning) for _, child in own[1:])


def _may_be_old(type_: pa.DataType) -> bool:
    return has_calendar(type_) or any(_may_be_old(one.type) for one in fields_in(type_))


def _reads_as(own: StoredType, type_: pa.DataType) -> bool:
    if isinstance(own, str):
        if pt.is_decimal(type_):
            digits = _DECIMAL.fullmatch(own)
            return (
                digits is not None
                and int(digits[1]) <= type_.precision
                and int(digits[2]) == type_.scale
            )
        return own in _STORED.get(type_, ())
    kind, *children = own
    kinds = {"struct": pt.is_struct, "list": pt.is_list, "map": pt.is_map}
    fields = fields_in(type_)
    if not kinds[kind](type_) or len(children) != len(fields):
        return False
    return all(
        _reads_as(child, field.type) and (kind != "struct" or name == name_in_files(field))
        for (name, child), field in zip(children, fields, strict=True)
    )


def _words(own: StoredType) -> str:
    return own if isinstance(own, str) else str(own[0])
