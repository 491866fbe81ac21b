"""Lists as tables: the least important columns go where there is no room, and pipes get no padding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from typing import Literal

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Column, Table
from rich.text import Text

# As wide as a pipe, in which nothing is wrapped.
PIPE_WIDTH = 10_000
_MOST_INDENT = 100
# Narrower, a text says nothing any more.
_LEAST_TEXT = 16
# Characters between two columns.
_BETWEEN = 3


class ListTable(Table):
    """A table of a list, with titles at its head.

    In a pipe, its cells are separated by tabs.

    Args:
        titles: Titles of the columns. Figures (`rows>`) stand on the right; long texts (`host…`)
            wrap.
        drops: Columns that go first where there is no room, in this order.
        show_edge: Whether there are empty lines around it.
    """

    def __init__(
        self, titles: Sequence[str], drops: Sequence[str] = (), *, show_edge: bool = True
    ) -> None:
        super().__init__(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=show_edge)
        self._drops = drops
        for title in titles:
            text, kind = title.rstrip(">…"), title[-1:]
            if kind == "…":
                # Narrower, it says nothing any more.
                self.add_column(
                    text,
                    overflow="fold",
                    min_width=_LEAST_TEXT,
                )
            else:
                side: Literal["left", "right"] = "right" if kind == ">" else "left"
                self.add_column(text, justify=side, no_wrap=True)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if options.max_width > PIPE_WIDTH - _MOST_INDENT:
            yield from self._lines()
            return
        columns = self.columns
        for count in range(len(self._drops) + 1):
            drops = self._drops[:count]
            left = [copy(column) for column in columns if column.header not in drops]
            for index, column in enumerate(left):
                column._index = index
            self.columns = left
            if self._least_width() <= options.max_width:
                break
        yield from super().__rich_console__(console, options)
        self.columns = columns

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(1, min(options.max_width, super().__rich_measure__(console, options)[1]))

    def _least_width(self) -> int:
        """Return the width in which nothing is cut; long texts wrap, down to a few words."""
        widths = []
        for column in self.columns:
            width = max(cell_len(line) for text in _texts(column) for line in text.split("\n"))
            if not column.no_wrap:
                width = column.min_width = min(width, _LEAST_TEXT)
            widths.append(width)
        return sum(widths) + _BETWEEN * (len(widths) - 1) + 2 * self.show_edge

    def _lines(self) -> Iterator[Text]:
        for row in zip(*map(_texts, self.columns), strict=True):
            yield Text("\t".join(" ".join(text.split()) for text in row), no_wrap=True)


def _texts(column: Column) -> list[str]:
    return [str(cell) for cell in (column.header, *column.cells)]
