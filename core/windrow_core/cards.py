"""How objects show themselves: as a line at a prompt, and as HTML in a notebook."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import singledispatch
from html import escape
from typing import Any, TypeAlias, TypeVar

from windrow_core.errors import Call
from windrow_core.remedies import worded
from windrow_core.sizes import size_text

T = TypeVar("T")

MAX_LINE = 500
# Rows of a grid that are shown, and characters of a cell.
SHOWN_ROWS = 20
MAX_CELL = 200
MAX_TEXT = 2_000
DASH = "\N{EN DASH}"
_MAX_FACT = 100
_UNITS = ((86_400, "day"), (3_600, "hour"), (60, "minute"))
_SHORT_CELL = 24
_MAX_ITEMS = 6

# Notebooks have styles of their own for tables, which name fewer classes than these.
_STYLE = (
    "<style>.windrow.windrow td,.windrow.windrow th{text-align:left;vertical-align:top;"
    "padding:1px 12px 1px 0;border:0;background:none}"
    ".windrow.windrow tbody tr:nth-child(n){background:none}"
    ".windrow.windrow table{border:0;margin:4px 0 8px;border-collapse:collapse}"
    ".windrow.windrow td.n,.windrow.windrow th.n{text-align:right;"
    "font-variant-numeric:tabular-nums}"
    ".windrow.windrow td.s{white-space:nowrap}"
    ".windrow.windrow th{font-weight:600}.windrow.windrow td.f{opacity:.65}"
    ".windrow .more{opacity:.65}.windrow.windrow tr.m td{font-weight:600}"
    ".windrow i.bar{display:inline-block;height:.7em;background:#2a7;min-width:1px}"
    ".windrow i.loss{background:#c54}</style>"
)


@dataclass(frozen=True, slots=True)
class Bar:
    """A cell with a bar.

    Attributes:
        share: Its length, from 0 to 1.
        is_loss: Whether it stands for what is left out.
    """

    share: float
    is_loss: bool = False


Cell: TypeAlias = str | Bar


@dataclass(frozen=True, slots=True)
class Layout:
    """What a terminal does with the columns of a list where there is no room for all.

    Attributes:
        drops: Columns that go first, in this order.
        stacks: Columns that stand below each other, by the title that they then have in common, such
            as `{"table, filter": ("table", "filter")}`.
        least_text: Width down to which long texts wrap before other columns go, in characters.
    """

    drops: Sequence[str] = ()
    stacks: Mapping[str, Sequence[str]] = field(default_factory=dict)
    least_text: int = 16


@dataclass(frozen=True, slots=True)
class Grid:
    """A table within a card, or a list; columns without any text are not shown.

    Attributes:
        titles: Titles of the columns. Figures (`rows>`) stand on the right; long texts (`host…`)
            wrap in terminals. A column without a title is one of bars.
        rows: The cells; notebooks show the first `SHOWN_ROWS` rows.
        title: What is listed.
        note: What is said below; by default, how many further rows there are.
        total: Number of all rows, if these are only the first.
        layout: What goes where there is no room.
        main: Position of the row that stands out.
    """

    titles: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    title: str = ""
    note: str = ""
    total: int = 0
    layout: Layout = Layout()
    main: int | None = None

    def note_below(self, count: int) -> str:
        """Return what stands below the rows of which so many are shown."""
        left = max(self.total, len(self.rows)) - count
        return self.note or (f"and {left:,} more" if left > 0 else "")

    def html(self) -> str:
        """Return the grid as HTML."""
        rows = self.rows[:SHOWN_ROWS]
        kinds = {
            at: ' class="n"' if title.endswith(">") else ""
            for at, title in enumerate(self.titles)
            if not rows or any(row[at] for row in rows)
        }
        head = "".join(
            f"<th{kind}>{escape(in_one_line(self.titles[at]))}</th>" for at, kind in kinds.items()
        )
        body = "".join(
            ('<tr class="m">' if number == self.main else "<tr>")
            + "".join(
                f"<td{kind or _short_class(row[at])}>{_cell(row[at])}</td>"
                for at, kind in kinds.items()
            )
            + "</tr>"
            for number, row in enumerate(rows)
        )
        title = f"<div><b>{escape(self.title)}</b></div>" if self.title else ""
        note = self.note_below(len(rows))
        return f"{title}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>" + (
            f'<div class="more">{escape(note)}</div>' if note else ""
        )


class Hint(str):
    """A text with the call that helps, in the words of Python, or of commands.

    Attributes:
        in_commands: The text in the words of commands.
    """

    in_commands: str

    def __new__(cls, template: str, operation: str, /, **arguments: Any) -> Hint:
        """Return the text of a template with `{call}`, for an operation with its arguments."""
        call = Call(operation, **arguments)
        hint = super().__new__(cls, template.format(call=worded(call, "python")))
        hint.in_commands = template.format(call=worded(call, "command"))
        return hint


@dataclass(frozen=True, slots=True)
class Card:
    """What is shown of an object.

    Attributes:
        title: What it is, with its name.
        facts: Names, and what is said of each.
        grids: Tables, which a line at a prompt leaves out.
        remark: A sentence below.
    """

    title: str
    facts: Sequence[tuple[str, str]] = ()
    grids: Sequence[Grid] = ()
    remark: str = ""

    def line(self) -> str:
        """Return the card in at most `MAX_LINE` characters, without its grids."""
        facts = "; ".join(f"{name}: {text}" for name, text in self.facts)
        text = " ".join((f"{self.title}: {facts}" if facts else self.title).split())
        return f"<{shortened(text, MAX_LINE - 2)}>"

    def html(self) -> str:
        """Return the card as HTML; all texts are escaped."""
        facts = "".join(
            f'<tr><td class="f">{escape(name)}</td><td>{_cell(text, MAX_TEXT)}</td></tr>'
            for name, text in self.facts
        )
        return (
            f'<div class="windrow">{_STYLE}<div><b>{escape(self.title)}</b></div>'
            + (f"<table>{facts}</table>" if facts else "")
            + "".join(grid.html() for grid in self.grids)
            + (f'<div class="more">{escape(self.remark)}</div>' if self.remark else "")
            + "</div>"
        )


class Shown:
    """An object that shows itself by its card."""

    __slots__ = ()

    def __repr__(self) -> str:
        return card_of(self).line()

    def __str__(self) -> str:
        return repr(self)

    def _repr_html_(self) -> str:
        """Return what notebooks show."""
        return card_of(self).html()


class ShownList(Shown, list[T]):
    """A list that notebooks show as a table.

    Args:
        items: The items.
        noun: What is listed, such as `scans`.
    """

    def __init__(self, items: Iterable[T], noun: str) -> None:
        super().__init__(items)
        self.noun = noun


@singledispatch
def card_of(value: Any) -> Card:
    """Return what is shown of an object: by default, the fields of a model or a dataclass."""
    if not isinstance(value, Shown):
        return Card(str(value))
    return Card(
        words(type(value).__name__),
        [
            (name.removesuffix("_bytes").replace("_", " "), field_text(name, content))
            for name, content in _fields_of(value).items()
            if content is not None and name[0] != "_"
        ],
    )


def _fields_of(value: Any) -> Mapping[str, Any]:
    fields = getattr(type(value), "model_fields", None)
    if fields is None:
        fields = {field.name: field for field in dataclasses.fields(value) if field.repr}
    return {name: getattr(value, name) for name in fields}


@singledispatch
def row_of(item: Any) -> Mapping[str, Cell]:
    """Return the cells of an item in a list, by the titles of their columns."""
    return dict(card_of(item).facts[:6])


# How the lists of a type fit into narrow terminals.
LAYOUTS: dict[type, Layout] = {}


def grid_of(items: Sequence[Any], title: str = "", note: str = "") -> Grid:
    """Return a grid with a row for each item."""
    layout = LAYOUTS.get(type(items[0]), Layout()) if items else Layout()
    return grid_of_rows([row_of(item) for item in items], title, note, layout)


def grid_of_rows(
    rows: Sequence[Mapping[str, Cell]], title: str = "", note: str = "", layout: Layout = Layout()
) -> Grid:
    """Return a grid of rows whose cells are given by the titles of their columns."""
    titles = list(dict.fromkeys(name for row in rows for name in row))
    cells = [[row.get(name, "") for name in titles] for row in rows]
    return Grid(titles, cells, title, note, layout=layout)


@card_of.register
def _(items: ShownList) -> Card:  # type: ignore[type-arg]
    grids = [grid_of(items)] if items else []
    return Card(count_text(len(items), singular(items.noun), items.noun), grids=grids)


def words(name: str) -> str:
    """Return the words in the name of a class: `Table info` for `TableInfo`."""
    parts = "".join(f" {one.lower()}" if one.isupper() else one for one in name).split()
    return " ".join(parts).capitalize()


def field_text(name: str, value: object) -> str:
    """Return the value of a field as people read it; its name tells bytes, seconds and ids."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        if name.endswith(("bytes", "_size", "_cost")):
            return size_text(value)
        return str(value) if name.endswith(("id", "process", "version")) else f"{value:,}"
    if isinstance(value, float):
        text = f"{value:,.3g}" if abs(value) < 1_000 else f"{value:,.0f}"
        return f"{text} s" if name.endswith(("seconds", "_s")) else text
    if isinstance(value, datetime):
        return moment_text(value)
    if isinstance(value, Mapping):
        return _items(f"{key}={field_text(str(key), one)}" for key, one in value.items())
    if isinstance(value, list | tuple | set | frozenset):
        return _items(field_text(name, one) for one in value)
    if isinstance(value, Shown):
        return shortened(repr(value).strip("<>"), _MAX_FACT)
    return shortened(str(value), _MAX_FACT)


def _items(texts: Iterable[str]) -> str:
    items = list(texts)
    head = shortened(", ".join(items[:_MAX_ITEMS]), _MAX_FACT)
    left = len(items) - _MAX_ITEMS
    return f"{head} and {left:,} more" if left > 0 else head or "none"


def moment_text(at: datetime) -> str:
    """Return a time to the second, with its zone."""
    return f"{at:%Y-%m-%d %H:%M:%S %Z}".strip()


def utc_text(at: datetime | None) -> str:
    """Return a time in UTC for a list whose title names the zone; a dash for None."""
    return DASH if at is None else f"{at.astimezone(timezone.utc):%Y-%m-%d %H:%M:%S}"


def seconds_text(seconds: float) -> str:
    """Return seconds with at most three decimals: `0.012 s`, `1.23 s`, `12.3 s`, `< 0.001 s`."""
    if 0 < seconds < 0.0005:
        return "< 0.001 s"
    for limit, digits in ((0.9995, 3), (9.995, 2), (99.95, 1)):
        if seconds < limit:
            return f"{seconds:.{digits}f} s"
    return f"{seconds:,.0f} s"


def duration_text(seconds: float) -> str:
    """Return a duration as text such as `2 hours`, rounded."""
    for size, unit in _UNITS:
        if seconds >= size:
            return count_text(round(seconds / size), unit)
    return "a minute" if seconds > 0 else "no time"


def count_text(count: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun: `1 file`, `1,200 files`."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def singular(plural: str) -> str:
    """Return the singular of a noun: `file`, `batch`, `policy`."""
    for ending, other in (("ies", "y"), ("tches", "tch"), ("s", "")):
        if plural.endswith(ending):
            return plural.removesuffix(ending) + other
    return plural


def shortened(text: str, most: int) -> str:
    """Return at most so many characters of a text."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def in_one_line(title: str) -> str:
    """Return the title of a column without its marks and line breaks."""
    return title.rstrip(">…").replace("-\n", "").replace("\n", " ")


def _short_class(cell: Cell) -> str:
    """Return the class of cells in one line, such as times and folders of partitions."""
    return ' class="s"' if isinstance(cell, str) and len(cell) <= _SHORT_CELL else ""


def _cell(cell: Cell, most: int = MAX_CELL) -> str:
    if isinstance(cell, str):
        return escape(shortened(cell, most)).replace("\n", "<br>")
    if cell.share <= 0:
        return ""
    kind = "bar loss" if cell.is_loss else "bar"
    return f'<i class="{kind}" style="width:{max(0.0, min(1.0, cell.share)) * 160:.0f}px"></i>'
