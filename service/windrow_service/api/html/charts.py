"""Charts as SVG, coloured by the page's style sheet; a table beside each has its figures."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any
from xml.etree import ElementTree

from markupsafe import Markup

_OPTIONS = {
    "js": (),
    "css": (),
    "show_legend": False,
    "width": 720,
    "height": 240,
    "margin": 8,
    "disable_xml_declaration": True,
    "order_min": 0,
    "min_scale": 2,
    "max_scale": 5,
}


def bars(title: str, labels: Sequence[str], values: Sequence[int]) -> Markup:
    """Return a chart with one bar for each label."""
    chart = _pygal().Bar(**_OPTIONS, spacing=2, range=_from_zero(values), value_formatter=_number)
    chart.x_labels = labels
    chart.add(None, values)
    return _inline(chart, title)


def lines(title: str, labels: Sequence[str], series: Mapping[str, Sequence[int | None]]) -> Markup:
    """Return a chart with one line for each series."""
    chart = _pygal().Line(
        **{**_OPTIONS, "show_legend": True, "legend_at_bottom": True},
        dots_size=3,
        range=_from_zero([value for values in series.values() for value in values]),
        value_formatter=_number,
        show_only_major_dots=False,
    )
    chart.x_labels = labels
    for name, values in series.items():
        chart.add(name, list(values))
    return _inline(chart, title)


def _from_zero(values: Iterable[int | None]) -> tuple[float, float]:
    """Return a range from zero, with some room above the highest value."""
    return 0, 1.05 * max((value or 0 for value in values), default=0)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}"


@cache
def _pygal() -> Any:
    # Late, because importing it takes a tenth of a second.
    import pygal

    # pygal adds an import hook for its plugins, which would slow down all later imports.
    sys.meta_path[:] = [one for one in sys.meta_path if type(one) is not pygal.PluginImportFixer]
    return pygal


def _inline(chart: Any, title: str) -> Markup:
    svg = chart.render_tree()
    # The page's policy forbids their inline styles and scripts.
    for definitions in svg.findall("defs"):
        svg.remove(definitions)
    for each in list(svg):
        if each.tag == "title":
            svg.remove(each)
    for each in svg.iter():
        # The style sheet sets the sizes of texts.
        each.attrib.pop("style", None)
    svg.attrib.pop("id", None)
    svg.set("role", "img")
    svg.set("aria-label", title)
    return Markup(ElementTree.tostring(svg, encoding="unicode", method="html"))
