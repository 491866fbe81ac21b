"""Cards, lists and messages as a terminal shows them; nothing here prints or calls the coordinator."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from windrow_calls.terminal.bars import Bar
from windrow_calls.terminal.listings import FactTable, Indented, ListTable
from windrow_core.cards import DASH, Card, Cell, Grid, Hint, card_of, count_text, grid_of
from windrow_core.cards import Bar as CardBar
from windrow_core.sizes import size_text

if TYPE_CHECKING:
    import pyarrow as pa

    from windrow_calls.plans import SplitPlan
    from windrow_calls.terminal.histogram import SizeBin


def drawn(value: Any, fields: Sequence[str] = ()) -> RenderableType:
    """Draw what is shown of an object.

    Args:
        value: The object, or its card.
        fields: Fields of requests that texts may name, and that commands have options for.
    """
    card = value if isinstance(value, Card) else card_of(value)
    parts: list[RenderableType] = [Text(_said(card.title, fields), "bold", overflow="fold")]
    if card.facts:
        parts.append(FactTable((name, _said(text, fields)) for name, text in card.facts))
    for grid in card.grids:
        parts.append(Text(""))
        body: RenderableType = drawn_grid(grid, fields)
        if grid.title:
            parts.append(Text(grid.title, "bold"))
            body = Indented(body)
        parts.append(body)
    if card.remark:
        parts += [Text(""), Text(_said(card.remark, fields), "dim")]
    return Group(*parts)


def drawn_list(items: Sequence[Any], none: str, remedy: str = "") -> RenderableType:
    """Draw a list.

    Args:
        items: The items.
        none: The text if there are none.
        remedy: How to get one.
    """
    return drawn_grid(grid_of(items), show_edge=True) if items else message(none, remedy)


def drawn_grid(
    grid: Grid, fields: Sequence[str] = (), *, show_edge: bool = False
) -> RenderableType:
    """Draw a table, and below it what is said of it."""
    table = ListTable(grid.titles, grid.layout, show_edge=show_edge)
    for at, row in enumerate(grid.rows):
        cells = (_cell(cell, fields) for cell in row)
        table.add_row(*cells, style="bold" if at == grid.main else None)
    note = grid.note_below(len(grid.rows))
    gap = [Text("")] if grid.note else []
    return Group(table, *gap, Text(note, "dim")) if note else table


def _cell(cell: Cell, fields: Sequence[str]) -> RenderableType:
    if isinstance(cell, CardBar):
        return Bar(cell.share, 1, "red" if cell.is_loss else "green")
    return Text(_said(cell, fields))


def _said(text: str, fields: Sequence[str]) -> str:
    """Return a text in the words of commands: a value follows an option after a blank."""
    if isinstance(text, Hint):
        return text.in_commands
    if not fields:
        return text

    def option(match: re.Match[str]) -> str:
        return f"--{match[1].replace('_', '-')}{' ' * len(match[2])}"

    return re.sub(rf"\b({'|'.join(fields)})\b(=?)", option, text)


def bin_label(entry: SizeBin) -> str:
    """Return the range of a bin with a dash: 8 to 16 KB, or 512 B to 1 KB."""
    low, high = size_text(entry.low_bytes), size_text(entry.low_bytes * 2)
    number, unit = low.split(" ")
    return DASH.join((number if high.endswith(f" {unit}") else low, high))


def histogram(bins: Sequence[SizeBin], noun: str, style: str = "cyan") -> Table:
    """Draw one bar per bin, beside the number of what is counted."""
    table = ListTable(("size>", f"{noun}s>", ""), show_edge=False)
    largest = max((entry.count for entry in bins), default=0)
    for entry in bins:
        table.add_row(bin_label(entry), f"{entry.count:,}", Bar(entry.count, largest, style))
    return table


def plan_picture(plan: SplitPlan) -> RenderableType:
    """Draw the sizes of a plan's files and of its groups."""
    # Imported here: commands that show no sizes start in half the time.
    from windrow_calls.terminal.histogram import file_sizes

    files, groups = file_sizes(plan.groups), plan.groups["size_bytes"]
    return Group(
        picture("Files before", "file", files, "red"),
        picture("Groups after", "group", groups, "green"),
    )


def picture(title: str, noun: str, sizes: pa.Array | pa.ChunkedArray, style: str) -> RenderableType:
    """Draw a histogram of sizes in bytes, by powers of two."""
    import pyarrow.compute as pc

    from windrow_calls.terminal.histogram import size_bins

    if len(sizes) == 0:
        return Group(Text(""), Text(f"{title}: none", "bold"))
    head = Text(f"{title}: ", "bold").append(
        f"{count_text(len(sizes), noun)}, {size_text(pc.mean(sizes).as_py())} on average",
        "not bold",
    )
    return Group(Text(""), head, Indented(histogram(size_bins(sizes), noun, style)))


def message(text: str, more: str | None = None) -> RenderableType:
    """Show a line, and a remark below it."""
    lines = [Text(text, overflow="fold")]
    if more:
        lines.append(Text(more, "dim", overflow="fold"))
    return Group(*lines)


def titled(title: str, *body: RenderableType) -> RenderableType:
    """Show renderables below a title."""
    return Group(Text(title, "bold"), *map(Indented, body))


def section(title: str, *body: RenderableType) -> RenderableType:
    """Show renderables below a title, after an empty line; lists among them need no edge."""
    return Group(Text(""), titled(title, *body))
