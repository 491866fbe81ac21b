"""Charts: whatever names contain, they stay text, and they stay within their place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta, timezone
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from tests.support.laws import examples
from windrow_service.api.html.charts import (
    Box,
    Cell,
    Event,
    bars,
    heatmap,
    over_time,
    timeline,
    treemap,
)

NOW = datetime(2026, 11, 30, tzinfo=timezone.utc)
BEFORE = NOW - timedelta(days=3)
NAMES = {
    "a script": "<script>alert(1)</script>",
    "a quote that ends an attribute": '" onload="alert(1)',
    "the other quote": "' onload='alert(1)",
    "an ampersand": "a&b&lt;c&#60;d",
    "the end of the drawing": "</title></rect></svg><img src=x onerror=alert(1)>",
    "a placeholder": "{} {0} {name!r} %s",
    "a long name": "ds=" + "2026-11-30" * 200,
    "right to left": "مدينة=دمشق",
    "an override of the direction": "\u202egnp.exe",
    "wide letters": "城市=" + "北京" * 40,
    "a comment": "<!-- --> ]]> <![CDATA[",
    "nothing": "",
}
# Charts by what they draw, each from one name.
CHARTS: Mapping[str, Callable[[str], Markup]] = {
    "bars": lambda name: bars(name, [name], [3], names=[name], mark=(0.5, name)),
    "over time": lambda name: over_time(name, [BEFORE], {name: [3], "b": [4.5]}, NOW),
    "a heatmap": lambda name: heatmap(name, [name], [name], [[Cell(3, name, is_late=True)]]),
    "a treemap": lambda name: treemap(name, [Box(name, 3, name, "bad"), Box("b", 1, "", "watch")]),
    "a timeline": lambda name: timeline(name, [Event(BEFORE, 3, name, "first")], BEFORE, NOW),
}
TAGS = {"svg", "rect", "path", "text", "title", "circle"}
ATTRIBUTES = {"class", "viewBox", "role", "aria-label", "x", "y", "width", "height", "rx"}
ATTRIBUTES |= {"d", "cx", "cy", "r"}


def elements(chart: Markup) -> Iterator[ElementTree.Element]:
    return ElementTree.fromstring(str(chart)).iter()


def texts(chart: Markup, tag: str) -> list[str]:
    return [one.text or "" for one in elements(chart) if one.tag == tag]


@pytest.mark.parametrize("draw", CHARTS.values(), ids=list(CHARTS))
@pytest.mark.parametrize("name", NAMES.values(), ids=list(NAMES))
def test_a_name_adds_no_element_and_no_attribute(draw: Callable[[str], Markup], name: str) -> None:
    chart = draw(name)
    plain = draw("a" if name else "")

    drawn = list(elements(chart))
    assert {one.tag for one in drawn} <= TAGS
    assert {attribute for one in drawn for attribute in one.attrib} <= ATTRIBUTES
    assert drawn[0].attrib["aria-label"] == name
    # Names that fit no box of a treemap are left out.
    assert len(drawn) <= len(list(elements(plain)))


@pytest.mark.parametrize("draw", CHARTS.values(), ids=list(CHARTS))
@pytest.mark.parametrize("name", NAMES.values(), ids=list(NAMES))
def test_whoever_points_at_a_chart_reads_the_whole_name(
    draw: Callable[[str], Markup], name: str
) -> None:
    assert any(name in text for text in texts(draw(name), "title"))


@examples(200)
@given(name=st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=40))
def test_any_name_comes_back_from_a_chart_as_it_was(name: str) -> None:
    for draw in CHARTS.values():
        assert any(name in text for text in texts(draw(name), "title"))


@pytest.mark.parametrize("name", [NAMES["a long name"], NAMES["wide letters"]])
def test_long_names_of_rows_keep_their_end_and_leave_room_for_cells(name: str) -> None:
    chart = heatmap("t", [name], ["d"], [[Cell(3, name)]])

    (row,) = (one for one in elements(chart) if one.attrib.get("class") == "row")
    assert row.text is not None
    assert row.text.startswith("…")
    assert name.endswith(row.text[1:])
    cells = [one for one in elements(chart) if "cell" in one.attrib.get("class", "")]
    # Names end to the left of the cells; letters of East Asia are twice as wide as others.
    width = sum(7 if letter < "\u2e80" else 13 for letter in row.text)
    assert float(row.attrib["x"]) - width >= 0
    assert float(row.attrib["x"]) < float(cells[0].attrib["x"])


def test_a_box_has_its_name_only_if_that_fits() -> None:
    long, short = "warehouse.of_something." + "t" * 120, "a.b"
    chart = treemap("t", [Box(long, 2, "5 s", "bad"), Box(short, 1, "3 s", "watch")])

    # A figure without a name would say little.
    assert texts(chart, "text") == [short, "3 s"]
    assert f"{long}: 5 s" in texts(chart, "title")


def test_a_narrow_box_has_the_end_of_its_name_and_the_figure_alone() -> None:
    boxes = [
        Box(f"warehouse.of_all_things.orders_{at}", 1, "34.4 s of all reads in 7 days", "bad")
        for at in range(12)
    ]
    chart = treemap("t", boxes)

    assert texts(chart, "text") == [text for at in range(12) for text in (f"orders_{at}", "34.4 s")]


def test_long_numbers_beside_an_axis_are_shortened() -> None:
    large = timeline("t", [Event(BEFORE, 53_625_245, "", "first")], BEFORE, NOW)
    small = timeline("t", [Event(BEFORE, 9_000_000, "", "first")], BEFORE, NOW)

    assert texts(large, "text")[:3] == ["0", "20 M", "40 M"]
    assert "5,000,000" in texts(small, "text")


@pytest.mark.parametrize(
    "chart",
    [
        bars("t", [], []),
        over_time("t", [NOW], {"a": [None]}, NOW),
        heatmap("t", [], [], []),
        heatmap("t", ["a"], ["d"], [[None]]),
        treemap("t", []),
        treemap("t", [Box("a", 0, "", "good"), Box("b", 0, "", "good")]),
        timeline("t", [], NOW, NOW),
    ],
)
def test_charts_of_nothing_are_drawn(chart: Markup) -> None:
    assert next(elements(chart)).attrib["aria-label"] == "t"


@examples(100)
@given(st.lists(st.floats(0.001, 1e6), min_size=1, max_size=40).map(sorted))
def test_boxes_fill_the_drawing_by_their_values_and_do_not_overlap(values: list[float]) -> None:
    values = values[::-1]
    chart = treemap("t", [Box(f"b{at}", value, "", "bad") for at, value in enumerate(values)])

    boxes = [
        tuple(float(one.attrib[side]) for side in ("x", "y", "width", "height"))
        for one in elements(chart)
        if one.tag == "rect"
    ]
    total = sum(values)
    for (_, _, width, height), value in zip(boxes, values, strict=True):
        # Sides are told to a tenth of a pixel.
        share = 720 * 240 * value / total
        assert width * height == pytest.approx(share, abs=0.11 * (width + height + 1))
    for at, (x, y, width, height) in enumerate(boxes):
        for other_x, other_y, other_width, other_height in boxes[at + 1 :]:
            wide = min(x + width, other_x + other_width) - max(x, other_x)
            tall = min(y + height, other_y + other_height) - max(y, other_y)
            assert min(wide, tall) <= 0.21
