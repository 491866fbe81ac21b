"""Laws of Bloom filters, over real Parquet files."""

from __future__ import annotations

import math
import tempfile
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.laws import examples
from windrow_core.files.status import FileStatus
from windrow_service.inventory.footers.blooms import read_filters
from windrow_service.planner.pruning.bloom import MAX_FILTER_BYTES, BloomColumn, bloom_filter

UTC = timezone.utc
MICROS = st.datetimes(datetime(1700, 1, 1), datetime(2200, 1, 1))  # noqa: DTZ001
WHOLE_SECONDS = MICROS.map(lambda at: at.replace(microsecond=0))


def decimals(places: int) -> st.SearchStrategy[Decimal]:
    return st.decimals(-999, 999, places=places)


# The column's type in a file and in the table, values that both can hold, and a function from a
# value in the file to the value that readers of the table see.
COLUMNS: dict[str, tuple[pa.DataType, pa.DataType, st.SearchStrategy[Any], Any]] = {
    "bool": (pa.bool_(), pa.bool_(), st.booleans(), None),
    "int8 as int64": (pa.int8(), pa.int64(), st.integers(-128, 127), None),
    "int32 as double": (pa.int32(), pa.float64(), st.integers(-(2**31), 2**31 - 1), float),
    "int32 as decimal": (
        pa.int32(),
        pa.decimal128(14, 4),
        st.integers(-(2**31), 2**31 - 1),
        lambda value: Decimal(value).quantize(Decimal("0.0001")),
    ),
    "int64": (pa.int64(), pa.int64(), st.integers(-(2**63), 2**63 - 1), None),
    "uint64 as decimal": (pa.uint64(), pa.decimal128(20), st.integers(0, 2**64 - 1), Decimal),
    "float": (pa.float32(), pa.float64(), st.floats(width=32), None),
    "double": (pa.float64(), pa.float64(), st.floats() | st.sampled_from([0.0, -0.0]), None),
    "decimal": (pa.decimal128(5, 2), pa.decimal128(5, 2), decimals(2), None),
    "decimal of more places": (
        pa.decimal128(5, 2),
        pa.decimal128(38, 30),
        decimals(2),
        lambda value: pa.scalar(value, pa.decimal128(38, 30)).as_py(),
    ),
    "string": (pa.string(), pa.string(), st.text(max_size=12), None),
    "dictionary": (pa.dictionary(pa.int32(), pa.string()), pa.string(), st.text("ab"), None),
    "binary": (pa.binary(), pa.binary(), st.binary(max_size=12), None),
    "fixed": (pa.binary(3), pa.binary(), st.binary(min_size=3, max_size=3), None),
    "date": (pa.date32(), pa.date32(), st.dates(), None),
    "date as timestamp": (
        pa.date32(),
        pa.timestamp("us"),
        st.dates(),
        lambda day: datetime(day.year, day.month, day.day),  # noqa: DTZ001
    ),
    "seconds": (pa.timestamp("s"), pa.timestamp("us"), WHOLE_SECONDS, None),
    "millis": (
        pa.timestamp("ms", "UTC"),
        pa.timestamp("us", "UTC"),
        WHOLE_SECONDS.map(lambda at: at.replace(tzinfo=UTC)),
        None,
    ),
    "nanos": (pa.timestamp("ns"), pa.timestamp("us"), MICROS, None),
}


def column_of(type_: pa.DataType, *values: list[Any]) -> BloomColumn:
    """Return the filters of files that hold these values, in two chunks."""
    filters = [bloom_filter(pa.array(of_file, type_)) for of_file in values]
    half = len(filters) // 2
    chunks = [pa.array(part, pa.large_binary()) for part in (filters[:half], filters[half:])]
    return BloomColumn(pa.chunked_array(chunks), type_)


def holds(column: BloomColumn, count: int, *literals: Any) -> list[bool]:
    first = np.zeros(count, np.int64)
    found: list[bool] = column.may_hold(literals, first, first + len(literals)).tolist()
    return found


@examples(50)
@given(st.data(), st.sampled_from(sorted(COLUMNS)))
def test_a_value_that_a_file_holds_is_always_found(data: st.DataObject, name: str) -> None:
    held, table_type, strategy, as_read = COLUMNS[name]
    values = data.draw(st.lists(st.none() | strategy, max_size=30))
    table = pa.table({"Col": pa.array(values, held)})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "f"
        pq.write_table(table, path, row_group_size=max(1, len(values) // 2))
        status = path.stat()
        chunk = read_filters(
            folder, ["col"], 0, ["f"], [FileStatus(status.st_size, status.st_mtime_ns)]
        )
    column = BloomColumn(
        pa.chunked_array([pa.array(chunk.filters[0], pa.large_binary())]), table_type
    )

    for value in values:
        if value is not None:
            literal = value if as_read is None else as_read(value)
            assert holds(column, 1, literal) == [True]
            if literal == 0 and isinstance(literal, float):
                assert holds(column, 1, -literal) == [True]


@examples(25)
@given(
    st.lists(st.lists(st.integers(0, 300), max_size=40), max_size=6),
    st.lists(st.integers(0, 300), min_size=1, max_size=90, unique=True).map(sorted),
    st.randoms(use_true_random=False),
)
def test_each_file_is_searched_for_the_listed_values_within_its_bounds(
    files: list[list[int]], literals: list[int], random: Any
) -> None:
    column = column_of(pa.int64(), *files)
    first = np.array([random.randint(0, len(literals)) for _ in files], np.int64)
    last = np.array([random.randint(at, len(literals)) for at in first.tolist()], np.int64)

    found = column.may_hold(literals, first, last)

    for at, values in enumerate(files):
        asked = set(literals[first[at] : last[at]])
        assert found[at] or asked.isdisjoint(values)
        assert not (found[at] and not asked)


@pytest.mark.slow
def test_about_one_in_a_hundred_absent_values_is_a_false_positive() -> None:
    for count in (10, 100, 1_000, 20_000):
        column = column_of(pa.int64(), list(range(count)))
        found = sum(holds(column, 1, -value)[0] for value in range(1, 3_001))
        # Small filters do better than 1 in 100, as their size is rounded up to whole blocks.
        assert found < 60, count


def test_a_filter_is_as_large_as_its_values_need_and_no_larger_than_allowed() -> None:
    sizes = [len(bloom_filter(pa.array(range(count)))) for count in (0, 26, 27, 1_000, 27_000)]

    assert sizes == [32, 32, 64, 1_216, 32_704]
    assert max(sizes) <= MAX_FILTER_BYTES
    assert bloom_filter(pa.array(range(28_000))) == b""


def test_an_unknown_filter_may_hold_anything() -> None:
    column = BloomColumn(
        pa.chunked_array([pa.array([None, b"", bloom_filter(pa.array([1]))], pa.large_binary())]),
        pa.int64(),
    )

    assert holds(column, 3, 2) == [True, True, False]
    assert holds(column, 3, 1) == [True, True, True]


def test_equal_values_of_different_types_are_one_value() -> None:
    one = [
        pa.array([1], pa.int8()),
        pa.array([1], pa.uint64()),
        pa.array([1.0], pa.float32()),
        pa.array([Decimal("1.00")], pa.decimal128(5, 2)),
        pa.array([Decimal(1)], pa.decimal128(38, 0)),
    ]
    zero = [pa.array([value]) for value in (0, 0.0, -0.0, Decimal("0.00"))]
    nan = [pa.array([value]) for value in (math.nan, -math.nan)]
    day = [pa.array([date(2026, 1, 1)]), pa.array([datetime(2026, 1, 1)])]  # noqa: DTZ001
    day += [day[1].cast(pa.timestamp(unit)) for unit in ("s", "ms", "ns")]

    for same in (one, zero, nan, day):
        assert len({bloom_filter(values) for values in same}) == 1


def test_filters_follow_the_parquet_format() -> None:
    # Derived by hand from xxh64(b"a", 0) = 0xd24ec4f1a98c6e5b and the format's salts.
    low = 0xA98C6E5B
    salts = (0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D)
    salts += (0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31)
    expected = [1 << ((low * salt % 2**32) >> 27) for salt in salts]

    assert np.frombuffer(bloom_filter(pa.array(["a"])), "<u4").tolist() == expected
