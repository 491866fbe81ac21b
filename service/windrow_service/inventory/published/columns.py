"""The columns of a published inventory, checked one by one; errors name the row and column."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from windrow_core.files.arrays import flat, make_struct
from windrow_core.files.layouts import is_layout
from windrow_core.files.numbered_layouts import TEXTS
from windrow_core.files.rows import ROW_COLUMN, ROW_COLUMNS
from windrow_service.inventory.errors import InvalidInventoryError
from windrow_service.planner.pruning.bloom import MAX_FILTER_BYTES

REQUIRED = tuple(column.name for column in ROW_COLUMNS if column.publishing == "required")
_OPTIONAL = tuple(column.name for column in ROW_COLUMNS if column.publishing == "optional")
# Paths that leave the table's folder, or are another spelling of a path.
_NOT_CANONICAL = r"^/|/$|//|\x00|(^|/)\.{1,2}(/|$)"
# Block size of the filters of `planner.pruning.bloom`.
_BLOCK_BYTES = 32
_MAX_SHOWN_CHARACTERS = 100


class PublishedRows:
    """Rows that were published; errors number them as they were sent.

    Args:
        table: The table as it was sent.
        numbers: Numbers of the rows to use; None means all.
    """

    def __init__(self, table: pa.Table, numbers: npt.NDArray[np.int64] | None = None) -> None:
        self.numbers = np.arange(len(table)) if numbers is None else numbers
        self.table = table if numbers is None else table.take(pa.array(numbers))

    def column(self, name: str) -> pa.ChunkedArray:
        """Return a column, converted to its type in inventories."""
        field = ROW_COLUMN[name]
        if name not in self.table.column_names:
            raise InvalidInventoryError(f"column {name!r} is missing")
        if name == "layout":
            return self._layouts()
        column = cast_column(name, self.table[name], field.type)
        if not field.nullable:
            self.refuse(name, column.is_null(), column, "is null")
        if pt.is_list(field.type):
            nulls = pc.is_null(pc.list_flatten(column))
            flags = np.zeros(len(column), np.bool_)
            flags[pc.list_parent_indices(column).filter(nulls).to_numpy()] = True
            self.refuse(name, pa.array(flags), column, "holds null")
        elif pt.is_integer(field.type) and name != "mtime_ns":
            self.refuse(name, pc.less(column, 0), column, "is negative")
        return column

    def _layouts(self) -> pa.ChunkedArray:
        """Return the texts that the numbers in the column `layout` stand for."""
        texts = _layout_texts(self.table.schema.field("layout"))
        numbers = cast_column("layout", self.table["layout"], pa.int32())
        beyond = pc.or_(pc.less(numbers, 0), pc.greater_equal(numbers, len(texts)))
        self.refuse("layout", beyond, numbers, f"is not the number of one of {len(texts)} texts")
        values = pa.DictionaryArray.from_arrays(flat(numbers), pa.array(texts, pa.string()))
        return pa.chunked_array([values])

    def refuse_unknown_rows(self) -> None:
        """Refuse files whose row count is null."""
        counts = self.column("row_count")
        self.refuse("row_count", counts.is_null(), counts, "is null")

    def paths(self) -> pa.ChunkedArray:
        """Return the column `path`, after checking that every path is canonical and unique."""
        paths = self.column("path")
        self.refuse("path", pc.equal(paths, ""), paths, "is empty")
        climbs = pc.match_substring_regex(paths, _NOT_CANONICAL)
        self.refuse("path", climbs, paths, "is not canonical")
        order = pc.sort_indices(paths)
        ordered = paths.take(order)
        again = pc.indices_nonzero(pc.equal(ordered[1:], ordered[:-1]))
        if len(again):
            flags = np.zeros(len(paths), np.bool_)
            flags[order.to_numpy()[again.to_numpy() + 1]] = True
            self.refuse("path", pa.array(flags), paths, "appears twice")
        return paths

    def stats(self, row_count: pa.ChunkedArray, type_: pa.StructType) -> pa.StructArray:
        """Return the column `stats`; fields that were not sent are unknown.

        Args:
            row_count: Row count of each file.
            type_: The type in inventories of the table.
        """
        parts_by_name = self._fields("stats", [field.name for field in type_])
        columns = []
        for field in type_:
            name = f"stats.{field.name}"
            ends = {end.name: pa.nulls(len(self.table), end.type) for end in field.type}
            if field.name in parts_by_name:
                parts = _parts(name, parts_by_name[field.name], list(ends))
                for end, column in parts.items():
                    ends[end] = flat(cast_column(f"{name}.{end}", column, ends[end].type))
                self._refuse_contradictions(name, ends, row_count)
            columns.append(pa.StructArray.from_arrays(list(ends.values()), fields=list(field.type)))
        return make_struct(columns, list(type_), len(self.table))

    def _refuse_contradictions(
        self, name: str, ends: dict[str, pa.Array], row_count: pa.ChunkedArray
    ) -> None:
        low, high, nulls = ends["min"], ends["max"], ends["null_count"]
        self.refuse(f"{name}.min", pc.greater(low, high), low, "is greater than max")
        self.refuse(f"{name}.null_count", pc.less(nulls, 0), nulls, "is negative")
        more = pc.greater(nulls, row_count)
        self.refuse(f"{name}.null_count", more, nulls, "is greater than row_count")

    def bloom(self, names: Sequence[str]) -> pa.Table:
        """Return the Bloom filters of the given columns; those that were not sent are null."""
        parts = self._fields("bloom", list(names))
        filters = {}
        for name in names:
            column = parts.get(name, pa.chunked_array([pa.nulls(len(self.table), pa.binary())]))
            column = cast_column(f"bloom.{name}", column, pa.large_binary())
            length = pc.binary_length(column).fill_null(0).to_numpy()
            wrong = (length % _BLOCK_BYTES != 0) | (length > MAX_FILTER_BYTES)
            reason = (
                f"is not a filter of {_BLOCK_BYTES}-byte blocks, at most {MAX_FILTER_BYTES:,} bytes"
            )
            self.refuse(f"bloom.{name}", pa.array(wrong), column, reason)
            filters[name] = column
        return pa.table(filters)

    def _fields(self, name: str, expected_names: list[str]) -> dict[str, pa.ChunkedArray]:
        if name not in self.table.column_names:
            return {}
        return _parts(name, self.table[name], expected_names)

    def refuse(
        self, name: str, wrong: pa.Array, values: pa.Array | pa.ChunkedArray, what: str
    ) -> None:
        """Raise an error for the first row where `wrong` is true, if any; null counts as false."""
        rows = pc.indices_nonzero(wrong)
        if len(rows):
            row = rows[0].as_py()
            raise InvalidInventoryError(
                f"column {name!r}, row {self.numbers[row]}: {_shown(values[row])} {what}"
            )


def check_names(upload: pa.Table, *more: str) -> None:
    """Check that every column is one that an inventory may have, without duplicates."""
    names = (*more, *REQUIRED, *_OPTIONAL, "stats", "bloom")
    for name in upload.column_names:
        if name not in names:
            raise InvalidInventoryError(f"column {name!r} is unknown; send {', '.join(names)}")
        if upload.column_names.count(name) > 1:
            raise InvalidInventoryError(f"column {name!r} appears twice")


def _layout_texts(field: pa.Field) -> list[str]:
    """Return the texts of layouts, which are metadata of their column."""
    metadata = (field.metadata or {}).get(TEXTS, b"[]")
    try:
        texts = json.loads(metadata)
    except (ValueError, RecursionError):
        texts = None
    if not isinstance(texts, list) or not all(isinstance(one, str) for one in texts):
        raise InvalidInventoryError(
            f"column 'layout': its metadata {TEXTS.decode()!r} is no JSON list of texts"
        )
    if len(set(texts)) < len(texts) or not all(map(is_layout, texts)):
        raise InvalidInventoryError(
            f"column 'layout': its metadata {TEXTS.decode()!r} has a text that is no layout, or "
            "one twice"
        )
    return texts


def _parts(
    name: str, column: pa.ChunkedArray, expected_names: list[str]
) -> dict[str, pa.ChunkedArray]:
    """Return the fields of a struct by name."""
    if not pt.is_struct(column.type):
        raise InvalidInventoryError(f"column {name!r} is {column.type}; send a struct")
    parts: dict[str, pa.ChunkedArray] = {}
    names = frozenset(expected_names)
    # Flatten all fields at once: one field alone takes as long.
    for field, part in zip(column.type, column.flatten(), strict=True):
        if field.name not in names:
            raise InvalidInventoryError(
                f"column {f'{name}.{field.name}'!r} is unknown; send {', '.join(expected_names) or 'none'}"
            )
        if field.name in parts:
            raise InvalidInventoryError(f"column {f'{name}.{field.name}'!r} appears twice")
        parts[field.name] = part
    return parts


def cast_column(name: str, column: pa.ChunkedArray, type_: pa.DataType) -> pa.ChunkedArray:
    """Return a column converted to another type."""
    try:
        return column.cast(type_)
    except pa.ArrowException as error:
        raise InvalidInventoryError(
            f"column {name!r} is {column.type}, and not all values fit {type_}: {error}"
        ) from error


def _shown(value: pa.Scalar) -> str:
    try:
        text = repr(value.as_py())
    except (ValueError, OverflowError):
        # Arrow has years that Python cannot represent.
        text = str(value.cast(pa.int64()))
    if len(text) <= _MAX_SHOWN_CHARACTERS:
        return text
    return f"{text[: _MAX_SHOWN_CHARACTERS - 3]}..."
