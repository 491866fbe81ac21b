"""Rows of tables as text."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable, Iterator
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.types as pt
from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.text import Text

from windrow_calls.terminal.listings import LEAST_TEXT, Drawing, PipedTable
from windrow_calls.terminal.render import message
from windrow_core.cards import count_text

_NULL = "NULL"


def as_table(rows: pa.Table) -> RenderableType:
    """Show rows in columns."""
    if not rows.num_rows:
        return message("no row matches")
    table = _Rows(box=box.SIMPLE_HEAD, pad_edge=False)
    for field in rows.schema:
        is_number = pt.is_integer(field.type) or pt.is_floating(field.type)
        right = is_number or pt.is_decimal(field.type)
        table.add_column(Text(field.name), justify="right" if right else "left")
    for row in _values(rows):
        table.add_row(*(Text(_NULL, "dim") if v is None else Text(_cell(v)) for v in row))
    return Group(table, Drawing(Text(count_text(rows.num_rows, "row"), "dim")))


class _Rows(PipedTable):
    """Rows in columns; those that have no room are named below."""

    def _drawn(self, console: Console, options: ConsoleOptions) -> RenderResult:
        columns = self.columns
        count = max(self._fitting(options.max_width), 1)
        self.columns = columns[:count]
        yield from super()._drawn(console, options)
        self.columns = columns
        if count < len(columns):
            names = ", ".join(str(column.header) for column in columns[count:])
            yield Text(f"not shown, for lack of room: {names} (--columns chooses)", "dim")

    def _fitting(self, width: int) -> int:
        """Return how many columns have room in a width; long texts wrap, down to a few words."""
        # Two at the edges, and three between columns.
        left = width - 2
        for count, column in enumerate(self.columns):
            texts = (column.header, *column.cells)
            left -= min(max(cell_len(str(text)) for text in texts), LEAST_TEXT) + 3 * (count > 0)
            if left < 0:
                return count
        return len(self.columns)


def as_csv(rows: pa.RecordBatchReader) -> Iterator[str]:
    """Yield rows as CSV, with a line of names; texts are in quotes, and nulls are empty."""
    yield _csv_line(rows.schema.names)
    for batch in rows:
        yield "".join(map(_csv_line, _values(batch)))


def as_json_lines(rows: pa.RecordBatchReader) -> Iterator[str]:
    """Yield rows as JSON, an object on each line.

    Decimals are texts, so that no digit is lost; so are NaN and the infinities, which JSON lacks.
    """
    names = rows.schema.names
    for batch in rows:
        lines = (
            json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False)
            for row in _values(batch)
        )
        yield "".join(f"{line}\n" for line in lines)


def _values(rows: pa.Table | pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    """Yield rows as values that JSON has."""
    # Maps become objects only if their keys are texts.
    columns = [[_plain(value, column.type) for value in column.to_pylist()] for column in rows]
    return zip(*columns, strict=True)


def _plain(value: Any, type_: pa.DataType) -> Any:
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else _special(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime):
        return _moment(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return format(value, "f")
    if pt.is_map(type_):
        pairs = [(_plain(k, type_.key_type), _plain(v, type_.item_type)) for k, v in value]
        return dict(pairs) if pt.is_string(type_.key_type) else [list(pair) for pair in pairs]
    if pt.is_struct(type_):
        return {field.name: _plain(value[field.name], field.type) for field in type_}
    return [_plain(item, type_.value_type) for item in value]


def _special(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _moment(value: datetime) -> str:
    if value.tzinfo is None:
        return value.isoformat()
    return f"{value.astimezone(timezone.utc).replace(tzinfo=None).isoformat()}Z"


def _cell(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def _csv_line(values: Iterable[Any]) -> str:
    return ",".join("" if value is None else _csv_cell(value) for value in values) + "\n"


def _csv_cell(value: Any) -> str:
    text = _cell(value)
    if not isinstance(value, (str, dict, list)):
        return text
    return '"' + text.replace('"', '""') + '"'
