"""Charts as SVG, coloured by the page's style sheet; a table beside each has its figures."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from markupsafe import Markup, escape

_WIDTH, _HEIGHT = 720, 240
# The room for numbers to the left, for names below, and above the highest value.
_LEFT, _BELOW, _ABOVE, _RIGHT = 72, 34, 22, 12
_ROOM = _WIDTH - _LEFT - _RIGHT
_TICKS = 4
# Widths of time between ticks, the smallest first.
_STEPS = [
    timedelta(seconds=seconds) for seconds in (1, 10, 60, 300, 1_800, 3_600, 4 * 3_600, 12 * 3_600)
] + [timedelta(days=days) for days in (1, 7, 30, 90, 365)]
# Rows of a heatmap, the room for their names, and how many letters fit into it.
_ROW, _NAMES, _LONGEST = 18, 150, 20
# A box of a treemap has its name, and then its figure, only if that fits.
_BOXED, _LETTER = 40, 7.2


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a heatmap: its figure, what it stands for, and whether it is marked as late."""

    value: int
    text: str
    is_late: bool = False


@dataclass(frozen=True, slots=True)
class Box:
    """A box of a treemap: its name, its share, what it stands for, and how bad that is."""

    name: str
    value: float
    text: str
    level: str


@dataclass(frozen=True, slots=True)
class Event:
    """Something on a timeline: when, how high, what, and the class of its colour."""

    at: datetime
    value: float
    text: str
    kind: str


def bars(
    title: str,
    labels: Sequence[str],
    values: Sequence[int],
    *,
    names: Sequence[str] | None = None,
    mark: tuple[float, str] | None = None,
) -> Markup:
    """Return a chart with a bar for each label.

    Args:
        title: What it shows.
        labels: Texts below the bars; an empty one is left out.
        values: Their heights.
        names: What each bar stands for, if the labels do not say it.
        mark: A line across, at a number of bars from the left, and its name.
    """
    scale = _Scale(max(values, default=0))
    step = _ROOM / max(len(values), 1)
    parts = [scale.lines()]
    for at, (name, value) in enumerate(zip(names or labels, values, strict=True)):
        top = scale.y(value)
        parts.append(
            Markup('<rect class="first" x="{}" y="{}" width="{}" height="{}">').format(
                _text(_LEFT + at * step + 1),
                _text(top),
                _text(max(step - 2, 1)),
                _text(scale.y(0) - top),
            )
            + Markup("<title>{}: {:,}</title></rect>").format(name, value)
        )
    for at, label in enumerate(labels):
        parts.append(_below(_LEFT + (at + 0.5) * step, label))
    if mark is not None:
        x, name = _LEFT + mark[0] * step, mark[1]
        parts.append(
            Markup(
                '<path class="mark" d="M{0} {1}V{2}"/><text class="mark" x="{3}" y="15">{4}</text>'
            ).format(_text(x), _ABOVE - 4, _text(scale.y(0)), _text(x), name)
        )
    return _chart(title, parts)


def over_time(
    title: str,
    times: Sequence[datetime],
    series: Mapping[str, Sequence[float | None]],
    until: datetime,
) -> Markup:
    """Return a chart with a line for each series, at most two, whose values last until the next.

    Args:
        title: What it shows.
        times: When each value began, the oldest first.
        series: A value for each time; None if there is none.
        until: Until when the last values last.
    """
    span = max((until - times[0]).total_seconds(), 1.0)

    def x(at: datetime) -> float:
        return _LEFT + _ROOM * min(max((at - times[0]).total_seconds() / span, 0.0), 1.0)

    names = [f"{at:%Y-%m-%d %H:%M} UTC" for at in times]
    points = [x(at) for at in times]
    parts = [_below(x(at), label) for at, label in _time_ticks(times[0], until)]
    return _chart(title, [*parts, *_steps(points, names, series, x(until))])


def heatmap(
    title: str, rows: Sequence[str], columns: Sequence[str], cells: Sequence[Sequence[Cell | None]]
) -> Markup:
    """Return a chart with a cell for each row and column, darker for more; late ones have a frame.

    Args:
        title: What it shows.
        rows: Names of the rows, from the top.
        columns: Texts below the columns; an empty one is left out.
        cells: The cells of each row; None where there is nothing.
    """
    width = (_WIDTH - _NAMES - _RIGHT) / max(len(columns), 1)
    most = max((cell.value for row in cells for cell in row if cell), default=1)
    parts = []
    for at, (name, row) in enumerate(zip(rows, cells, strict=True)):
        y = at * _ROW + 4
        parts.append(
            Markup('<text class="row" x="{}" y="{}">{}</text>').format(
                _NAMES - 8, y + 12, _shortened(name)
            )
        )
        for column, cell in enumerate(row):
            x = _NAMES + column * width
            place = Markup('x="{}" y="{}" width="{}" height="{}" rx="2"').format(
                _text(x + 1), y, _text(width - 2), _ROW - 2
            )
            if cell is None:
                parts.append(Markup('<rect class="none" {}/>').format(place))
                continue
            # Four steps of the logarithm, since most cells have few files and some have many.
            share = math.log1p(cell.value) / math.log1p(most)
            parts.append(
                Markup('<rect class="cell q{}" {}><title>{}</title></rect>').format(
                    min(int(share * 4) + 1, 4), place, cell.text
                )
            )
            if cell.is_late:
                inner = Markup('x="{}" y="{}" width="{}" height="{}" rx="2"').format(
                    _text(x + 2), y + 1, _text(width - 4), _ROW - 4
                )
                parts.append(Markup('<rect class="late" {}/>').format(inner))
    height = len(rows) * _ROW + 30
    for column, label in enumerate(columns):
        parts.append(_below(_NAMES + (column + 0.5) * width, label, height))
    return _chart(title, parts, height)


def treemap(title: str, boxes: Sequence[Box], height: int = _HEIGHT) -> Markup:
    """Return a chart of boxes whose areas are their values, the largest first."""
    parts = []
    for box, (x, y, width, tall) in zip(
        boxes, _squares([box.value for box in boxes], _WIDTH, height), strict=True
    ):
        parts.append(
            Markup(
                '<rect class="box {}" x="{}" y="{}" width="{}" height="{}" rx="4">'
                "<title>{}: {}</title></rect>"
            ).format(box.level, *map(_text, (x, y, width, tall)), box.name, box.text)
        )
        if tall < _BOXED:
            continue
        # A name without its namespace, and a figure without what it is of, are told if they fit.
        shorter = box.name.rpartition(".")[2], " ".join(box.text.split()[:2])
        for line, texts in enumerate(zip((box.name, box.text), shorter, strict=True)):
            text = next((one for one in texts if len(one) * _LETTER + 12 <= width), "")
            if not text:
                break
            parts.append(
                Markup('<text class="in-box" x="{}" y="{}">{}</text>').format(
                    _text(x + 6), _text(y + 18 + 16 * line), text
                )
            )
    return _chart(title, parts, height)


def timeline(
    title: str, events: Sequence[Event], since: datetime, until: datetime, height: int = 150
) -> Markup:
    """Return a chart with a bar for each event, at its time and as high as its value."""
    span = max((until - since).total_seconds(), 1.0)
    scale = _Scale(max((event.value for event in events), default=0), height)
    ticks = [
        _below(_LEFT + _ROOM * (at - since).total_seconds() / span, label, height)
        for at, label in _time_ticks(since, until)
    ]
    parts = [scale.lines(), *ticks]
    for event in events:
        x = _LEFT + _ROOM * min(max((event.at - since).total_seconds() / span, 0.0), 1.0)
        top = min(scale.y(event.value), scale.y(0) - 4)
        parts.append(
            Markup(
                '<rect class="{}" x="{}" y="{}" width="7" height="{}" rx="2"><title>{}</title></rect>'
            ).format(event.kind, _text(x - 3.5), _text(top), _text(scale.y(0) - top), event.text)
        )
    return _chart(title, parts, height)


def _squares(
    values: Sequence[float], width: float, height: float
) -> Iterator[tuple[float, float, float, float]]:
    """Yield a rectangle for each value, the largest first, as square as halving makes them."""
    total = sum(values)
    if len(values) < 2 or not total:
        yield from ((0.0, 0.0, width, height) for _ in values)
        return
    # The cut after which the first part has about half of all.
    cut, first = 1, values[0]
    while cut < len(values) - 1 and first + values[cut] <= total / 2:
        first += values[cut]
        cut += 1
    share = first / total
    left = (width * share, height) if width >= height else (width, height * share)
    right = (width - left[0], height) if width >= height else (width, height - left[1])
    x, y = (left[0], 0.0) if width >= height else (0.0, left[1])
    yield from _squares(values[:cut], *left)
    yield from ((x + a, y + b, c, d) for a, b, c, d in _squares(values[cut:], *right))


def _steps(
    points: Sequence[float],
    names: Sequence[str],
    series: Mapping[str, Sequence[float | None]],
    end: float,
) -> Iterator[Markup]:
    scale = _Scale(max((value or 0 for values in series.values() for value in values), default=0))
    yield scale.lines()
    for number, (name, values) in enumerate(series.items()):
        kind = ("first", "second")[number]
        path = ""
        for x, point, value in zip(points, names, values, strict=True):
            if value is None:
                continue
            y = _text(scale.y(value))
            path += f"H{_text(x)}V{y}" if path else f"M{_text(x)} {y}"
            yield Markup(
                '<circle class="{}" cx="{}" cy="{}" r="3"><title>{} {}: {:,}</title></circle>'
            ).format(kind, _text(x), y, point, name, value)
        if path:
            yield Markup('<path class="line {}" d="{}H{}"/>').format(kind, path, _text(end))
        x = _LEFT + 130 * number
        yield Markup(
            '<rect class="{}" x="{}" y="4" width="10" height="10"/>'
            '<text class="key" x="{}" y="13">{}</text>'
        ).format(kind, x, x + 15, name)


class _Scale:
    """The vertical axis: from zero, with lines at round numbers."""

    def __init__(self, highest: float, height: int = _HEIGHT) -> None:
        self._room = height - _ABOVE - _BELOW
        rough = max(highest, 1) / _TICKS
        power = 10 ** math.floor(math.log10(rough))
        self._step = max(int(next(one for one in (1, 2, 5, 10) if one * power >= rough) * power), 1)
        self._top = max(highest, self._step) * 1.05

    def y(self, value: float) -> float:
        """Return the position of a value."""
        return _ABOVE + self._room * (1 - value / self._top)

    def lines(self) -> Markup:
        """Return lines across, with their values."""
        values = range(0, int(self._top) + 1, self._step)
        return Markup("").join(
            Markup(
                '<path class="guide" d="M{0} {1}H{2}"/><text class="value" x="{3}" y="{4}">{5}</text>'
            ).format(
                _LEFT,
                _text(self.y(one)),
                _WIDTH - _RIGHT,
                _LEFT - 6,
                _text(self.y(one) + 4),
                _short(one),
            )
            for one in values
        )


def _short(value: int) -> str:
    """Return a number as text that fits beside the axis."""
    return f"{value:,}" if value < 10_000_000 else f"{value / 1_000_000:,g} M"


def _time_ticks(first: datetime, until: datetime) -> list[tuple[datetime, str]]:
    span = until - first
    step = next((one for one in _STEPS if span / one <= 2 * _TICKS), _STEPS[-1])
    begin = datetime(1970, 1, 1, tzinfo=timezone.utc)
    at = begin + -(-(first - begin) // step) * step
    pattern = "%Y-%m-%d" if step >= timedelta(days=1) else "%m-%d %H:%M"
    pattern = "%H:%M:%S" if step < timedelta(minutes=1) else pattern
    ticks = []
    while at <= until:
        ticks.append((at, f"{at:{pattern}}"))
        at += step
    return ticks


def _below(x: float, label: str, height: int = _HEIGHT) -> Markup:
    if not label:
        return Markup("")
    return Markup('<text class="name" x="{}" y="{}">{}</text>').format(_text(x), height - 12, label)


def _chart(title: str, parts: Sequence[Markup], height: int = _HEIGHT) -> Markup:
    head = f'<svg class="chart" viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{escape(title)}">'
    return Markup(head) + Markup("").join(parts) + Markup("</svg>")


def _shortened(name: str) -> str:
    """Return as much of the end of a name as fits beside a row."""
    # Letters of East Asia are twice as wide.
    widths = [2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in name]
    if sum(widths) <= _LONGEST:
        return name
    room, begin = _LONGEST - 1, len(name)
    while widths[begin - 1] <= room:
        begin -= 1
        room -= widths[begin]
    return f"…{name[begin:]}"


def _text(value: float) -> str:
    return f"{value:.1f}"
