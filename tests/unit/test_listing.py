"""Lists whose pages come when they are needed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow_calls.listing import Listing, Page


def pages_of(parts: list[list[int]], requests: list[int]) -> Iterator[Page]:
    for at, part in enumerate(parts):
        requests.append(at)
        yield Page(part, at == len(parts) - 1)


def listing_of(parts: list[list[int]]) -> tuple[Listing[int], list[int]]:
    requests: list[int] = []
    return Listing(pages_of(parts, requests), "numbers"), requests


PARTS = st.lists(st.lists(st.integers(), max_size=3), min_size=1, max_size=4)
ENDS = st.none() | st.integers(-9, 9)


@given(PARTS, ENDS, ENDS)
def test_a_listing_is_what_a_list_of_its_items_is(
    parts: list[list[int]], start: int | None, stop: int | None
) -> None:
    items = [item for part in parts for item in part]

    assert listing_of(parts)[0][start:stop] == items[start:stop]
    assert listing_of(parts)[0] == items
    assert len(listing_of(parts)[0]) == len(items)
    assert bool(listing_of(parts)[0]) == bool(items)
    assert list(reversed(listing_of(parts)[0])) == items[::-1]
    assert list(listing_of(parts)[0].stream()) == items


def test_a_page_is_requested_when_its_items_are_used() -> None:
    listing, requests = listing_of([[0, 1], [2, 3], [4]])
    assert requests == [0]

    assert listing[1] == 1
    assert listing[:2] == [0, 1]
    assert requests == [0]
    assert listing[2] == 2
    assert requests == [0, 1]
    assert listing[-1] == 4
    assert requests == [0, 1, 2]


def test_a_listing_that_is_streamed_keeps_nothing() -> None:
    listing, requests = listing_of([[0, 1], [2, 3], [4]])

    items = listing.stream()

    assert next(items) == 0
    assert requests == [0]
    assert [0, *items] == [0, 1, 2, 3, 4]
    assert list(listing) == []


def test_there_is_no_item_beyond_the_last() -> None:
    listing, _ = listing_of([[0], []])

    with pytest.raises(IndexError):
        listing[1]
