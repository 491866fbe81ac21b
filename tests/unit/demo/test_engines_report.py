"""The report of the demo of engines, from invented measurements."""

from __future__ import annotations

import pyarrow as pa
import pytest
from rich.console import Console

from windrow_demo.engine_sides import ALL_ROWS, ENGINES, FOLDER, ONE_DAY, PACKABLE, PACKED, WINDROW
from windrow_demo.engines import EngineReads, EnginesOutcome, are_equal
from windrow_demo.engines_report import engines_as_json, engines_report


def outcome(*wrong: str) -> EnginesOutcome:
    """Return measurements in which the last read has these wrong answers."""
    seconds = {
        FOLDER: {ONE_DAY: 6.0, ALL_ROWS: 30.0},
        WINDROW: {ONE_DAY: 0.5, ALL_ROWS: 40.0},
        PACKED: {ONE_DAY: 0.2, ALL_ROWS: 0.3},
    }
    last = list(ENGINES)[-1], WINDROW
    reads = tuple(
        EngineReads(
            engine=engine,
            way=way,
            version="1.0",
            seconds=times,
            rows={ONE_DAY: 842, ALL_ROWS: 336_776},
            wrong=wrong if (engine, way) == last else (),
        )
        for engine in ENGINES
        for way, times in seconds.items()
        if way != PACKED or engine in PACKABLE
    )
    return EnginesOutcome(reads=reads, files=19_486, refresh_s=8.0, describe_s=0.4, pack_s=20.0)


def text(one: EnginesOutcome) -> str:
    console = Console(width=120, record=True)
    with console.capture() as printed:
        for part in engines_report(one):
            console.print(part)
    return printed.get()


def test_the_report_has_each_engine_in_all_ways() -> None:
    report = text(outcome())

    assert "336,776 flights in 19,486 files" in report
    for title in ("DuckDB", "Polars", "PyIceberg (folder: PyArrow's dataset)", "Spark"):
        assert report.count(f"  {title}  ") == 2
    assert report.count("12.0x faster") == report.count("1.3x slower") == len(ENGINES)
    assert report.count("100.0x faster") == len(PACKABLE)
    assert "Packing took 20.0 s" in report
    assert "All engines returned the rows that were written" in report
    assert engines_as_json(outcome())["agreed"] is True


def test_an_engine_with_other_rows_is_named() -> None:
    one = outcome(ALL_ROWS)

    assert not one.agreed
    assert engines_as_json(one)["agreed"] is False
    assert "Spark, windrow: All rows, all columns, 336,776 rows" in text(one)


@pytest.mark.parametrize(
    ("rows", "is_equal"),
    [
        ({"n": [None, 1, 2], "t": ["a", "b", None]}, True),
        # In another order, with other types.
        ({"t": pa.array([None, "b", "a"], pa.large_string()), "n": pa.array([2, 1, None])}, True),
        ({"n": [None, 1, 2], "t": ["a", None, "b"]}, False),
        ({"n": [None, 1], "t": ["a", "b"]}, False),
        ({"n": [None, 1, 1, 2], "t": ["a", "b", "b", None]}, False),
        ({"n": [None, 1, 2]}, False),
    ],
)
def test_rows_are_compared_in_any_order(rows: dict[str, list[object]], is_equal: bool) -> None:
    schema = pa.schema({"n": pa.int32(), "t": pa.string()})
    answer = pa.table({"n": [1, 2, None], "t": ["b", None, "a"]}, schema)

    assert are_equal(pa.table(rows), answer) == is_equal
