"""Lists as tables: the least important columns go where there is no room, and pipes get no padding."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from typing import Literal

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.measure import Measurement
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Column, Table
from rich.text import Text

from windrow_calls.terminal.bars import LEAST_BAR, Bar
from windrow_core.cards import Layout

# As wide as a pipe, in which nothing is wrapped.
PIPE_WIDTH = 10_000
# Narrower, a text says nothing any more.
LEAST_TEXT = 16
_PLAIN = Layout()
# Characters between two columns.
_BETWEEN = 3
_INDENT = 2


class PipedTable(Table):
    """A table whose cells are separated by tabs in a pipe, which gets no bars."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if is_pipe(options):
            yield from self._lines()
        else:
            yield from self._drawn(console, options)

    def _drawn(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the table as a terminal shows it."""
        yield from super().__rich_console__(console, options)

    def _lines(self) -> Iterator[Segment]:
        columns = [column for column in self.columns if not _is_bars(column)]
        rows = zip(*(_texts(column)[1:] for column in columns), strict=True)
        if self.show_header:
            yield _line(str(column.header).replace("-\n", "") for column in columns)
        for row in rows:
            yield _line(row)


class ListTable(PipedTable):
    """A table of a list, with titles at its head.

    In a terminal, columns without any text are left out.

    Args:
        titles: Titles of the columns. Figures (`rows>`) stand on the right; long texts (`host…`)
            wrap. A column without a title is one of bars.
        layout: What goes where there is no room.
        show_edge: Whether there are empty lines around it.
    """

    def __init__(
        self,
        titles: Sequence[str],
        layout: Layout = _PLAIN,
        *,
        show_edge: bool = True,
    ) -> None:
        super().__init__(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=show_edge)
        self._layout = layout
        for title in titles:
            text, kind = title.rstrip(">…"), title[-1:]
            if kind == "…":
                self.add_column(text, overflow="fold", min_width=LEAST_TEXT)
            elif not text:
                self.add_column(text, min_width=LEAST_BAR)
            else:
                side: Literal["left", "right"] = "right" if kind == ">" else "left"
                self.add_column(text, justify=side, no_wrap=True)

    def _drawn(self, console: Console, options: ConsoleOptions) -> RenderResult:
        columns = self.columns
        for layout in self._layouts([column for column in columns if _has_text(column)]):
            self.columns = [copy(column) for column in layout]
            for index, column in enumerate(self.columns):
                column._index = index
            if self._least_width() <= options.max_width:
                break
        else:
            # Nothing is cut: where even the last layout has no room, everything wraps.
            for column in self.columns:
                column.no_wrap, column.overflow = False, "fold"
        yield from super()._drawn(console, options)
        self.columns = columns

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(1, min(options.max_width, super().__rich_measure__(console, options)[1]))

    def _layouts(self, columns: list[Column]) -> Iterator[list[Column]]:
        """Yield the columns of ever narrower tables."""
        drops = self._layout.drops
        if self._layout.stacks:
            yield columns
            columns = self._stacked(columns)
        for count in range(len(drops) + 1):
            yield [column for column in columns if column.header not in drops[:count]]

    def _stacked(self, columns: Sequence[Column]) -> list[Column]:
        stacks, layout = self._layout.stacks, []
        for column in columns:
            for title, names in stacks.items():
                if column.header == names[0]:
                    layout.append(_stack(title, [one for one in columns if one.header in names]))
            if not any(column.header in names for names in stacks.values()):
                layout.append(column)
        return layout

    def _least_width(self) -> int:
        """Return the width in which nothing is cut; long texts wrap, down to a few words."""
        widths = []
        for column in self.columns:
            width = max(cell_len(line) for text in _texts(column) for line in text.split("\n"))
            if _is_bars(column):
                width = LEAST_BAR
            elif not column.no_wrap:
                column.min_width = min(width, LEAST_TEXT)
                width = min(width, self._layout.least_text)
            widths.append(width)
        return sum(widths) + _BETWEEN * (len(widths) - 1) + 2 * self.show_edge


class FactTable(PipedTable):
    """A table of names and what is said of each, separated by tabs in a pipe.

    Args:
        rows: The names, and the texts about each.
        name_style: The style of the names.
        justify: Where the names stand.
    """

    def __init__(
        self,
        rows: Iterable[tuple[str, str]] = (),
        name_style: str = "dim",
        justify: Literal["left", "right"] = "left",
    ) -> None:
        super().__init__(box=None, show_header=False, padding=(0, 2, 0, 0))
        self.add_column(style=name_style, no_wrap=True, justify=justify)
        self.add_column(overflow="fold")
        for name, text in rows:
            self.add_row(Text(name), Text(text))


class Indented:
    """Something that stands below a title, indented except in a pipe."""

    def __init__(self, body: RenderableType) -> None:
        self._body = body

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield self._body if is_pipe(options) else Padding(self._body, (0, 0, 0, _INDENT))


class Drawing:
    """Something that says nothing which the text around it does not; a pipe gets nothing of it."""

    def __init__(self, *body: RenderableType) -> None:
        self._body = body

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if not is_pipe(options):
            yield from self._body


def is_pipe(options: ConsoleOptions) -> bool:
    """Return whether output goes where nothing is padded and no line wrapped."""
    return options.max_width >= PIPE_WIDTH


def _line(cells: Iterable[str]) -> Segment:
    """Return a line of a pipe; as a text, its tabs would become blanks."""
    return Segment("\t".join(" ".join(text.split()) for text in cells) + "\n")


def _stack(title: str, columns: Sequence[Column]) -> Column:
    rows = zip(*(_texts(column)[1:] for column in columns), strict=True)
    stack = Column(title, overflow="fold", min_width=LEAST_TEXT)
    stack._cells = [Text("\n".join(filter(None, row))) for row in rows]
    return stack


def _has_text(column: Column) -> bool:
    return not column._cells or _is_bars(column) or any(str(cell) for cell in column._cells)


def _is_bars(column: Column) -> bool:
    return any(isinstance(cell, Bar) for cell in column._cells)


def _texts(column: Column) -> list[str]:
    return [str(cell) for cell in (column.header, *column.cells)]
