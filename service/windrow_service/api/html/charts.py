"""Charts as SVG, coloured by the page's style sheet; a table beside each has its figures."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
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


def lines(
    title: str, labels: Sequence[str], series: Mapping[str, Sequence[float | None]]
) -> Markup:
    """Return a chart with a line for each series, at most two, over steps of the same length.

    Args:
        title: What it shows.
        labels: Texts below the steps; an empty one is left out.
        series: A value for each step; None if there is none.
    """
    step = _ROOM / max(len(labels), 1)
    points = [_LEFT + at * step for at in range(len(labels))]
    parts = [_below(x, label) for x, label in zip(points, labels, strict=True)]
    return _chart(title, [*parts, *_steps(points, labels, series, _LEFT + _ROOM)])


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

    def __init__(self, highest: float) -> None:
        rough = max(highest, 1) / _TICKS
        power = 10 ** math.floor(math.log10(rough))
        self._step = max(int(next(one for one in (1, 2, 5, 10) if one * power >= rough) * power), 1)
        self._top = max(highest, self._step) * 1.05

    def y(self, value: float) -> float:
        """Return the position of a value."""
        room = _HEIGHT - _ABOVE - _BELOW
        return _ABOVE + room * (1 - value / self._top)

    def lines(self) -> Markup:
        """Return lines across, with their values."""
        values = range(0, int(self._top) + 1, self._step)
        return Markup("").join(
            Markup(
                '<path class="guide" d="M{0} {1}H{2}"/><text class="value" x="{3}" y="{4}">{5:,}</text>'
            ).format(
                _LEFT, _text(self.y(one)), _WIDTH - _RIGHT, _LEFT - 6, _text(self.y(one) + 4), one
            )
            for one in values
        )


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


def _below(x: float, label: str) -> Markup:
    if not label:
        return Markup("")
    return Markup('<text class="name" x="{}" y="{}">{}</text>').format(
        _text(x), _HEIGHT - 12, label
    )


def _chart(title: str, parts: Sequence[Markup]) -> Markup:
    head = f'<svg class="chart" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(title)}">'
    return Markup(head) + Markup("").join(parts) + Markup("</svg>")


def _text(value: float) -> str:
    return f"{value:.1f}"
