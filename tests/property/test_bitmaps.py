"""Bitmaps of deleted rows are decoded as the library that defines their format wrote them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

from tests.support.files.deleted import bitmap as written
from windrow_tables.executor.bitmaps import BitmapError, positions_in

MOST = 2**40

# Ranges give runs, many values bitmaps, few values arrays.
RANGES = st.tuples(
    st.integers(0, 2**34), st.integers(1, 200_000), st.sampled_from([1, 1, 2, 3, 97])
)
POSITIONS = st.tuples(st.lists(RANGES, max_size=4), st.lists(st.integers(0, 2**34), max_size=50))


def positions(parts: tuple[list[tuple[int, int, int]], list[int]]) -> BitMap64:
    ranges, single = parts
    found = BitMap64(single)
    for start, length, step in ranges:
        found |= BitMap64(range(start, start + length, step))
    return found


@given(POSITIONS, st.booleans())
def test_a_bitmap_holds_the_positions_that_were_put_in(
    parts: tuple[list[tuple[int, int, int]], list[int]], runs: bool
) -> None:
    wanted = positions(parts)

    found = positions_in(written(wanted, runs=runs), MOST)

    assert found.dtype == np.int64
    assert found.tolist() == list(wanted)


@given(POSITIONS, st.booleans(), st.data())
def test_damaged_bitmaps_are_refused_or_hold_positions_in_order_below_the_bound(
    parts: tuple[list[tuple[int, int, int]], list[int]], runs: bool, data: st.DataObject
) -> None:
    content = bytearray(written(positions(parts), runs=runs))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(content)))
    most = data.draw(st.sampled_from([100, 2**20, MOST]))

    for damaged in (bytes(content), bytes(content[:cut])):
        try:
            found = positions_in(damaged, most)
        except BitmapError:
            continue
        assert (np.diff(found) > 0).all()
        assert not len(found) or 0 <= found[0] <= found[-1] < most


@pytest.mark.slow
def test_more_rows_than_a_file_has_are_refused_before_they_are_decoded() -> None:
    content = written(BitMap64(range(2**16 * 64)), runs=True)

    assert len(content) < 1500
    with pytest.raises(BitmapError, match="more rows than its file has"):
        positions_in(content, 2**16)
