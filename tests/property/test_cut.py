"""Laws of every cut: each byte once, legal boundaries, limits, and use of the initial splits."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from random import Random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.support.laws import examples
from tests.support.tables.inventories import inventory
from windrow_service.planner.packing.blocks import covered_blocks
from windrow_service.planner.packing.cut import cut

SETTINGS = examples(100)
NAMES = {
    "parquet": "blocks",
    "snappy.orc": "blocks",
    "csv": "bytes",
    "json.bz2": "bytes",
    "txt.gz": "whole",
    "zst": "whole",
}
Piece = tuple[int, int]


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[int], list[list[int]], list[str]]:
    """Draw the sizes of files, the offsets of their blocks, and their suffixes."""
    files = draw(
        st.lists(
            st.tuples(
                st.integers(0, 120),
                st.lists(st.integers(-3, 125), max_size=12).map(sorted)
                | st.sets(st.integers(0, 100), max_size=12).map(sorted),
                st.sampled_from(sorted(NAMES)),
            ),
            max_size=8,
        )
    )
    return tuple(map(list, zip(*files, strict=True))) if files else ([], [], [])  # type: ignore[return-value]


def all_pieces(
    case: tuple[list[int], list[list[int]], list[str]],
    limit: int,
    initial: int,
    count: int,
    level_tail: bool,
) -> list[list[Piece]]:
    """Return the begin and end of each piece of each file."""
    sizes, offsets, suffixes = case
    files = inventory(
        sizes,
        row_group_offsets=offsets or None,
        paths=[f"{n:03d}.{suffix}" for n, suffix in enumerate(suffixes)] or None,
    )
    splits = cut(
        files,
        np.arange(len(sizes)),
        limit,
        initial_size=initial,
        initial_count=count,
        level_tail=level_tail,
    )
    assert (np.diff(splits.file) >= 0).all()
    found: list[list[Piece]] = [[] for _ in sizes]
    for file, start, length in zip(
        splits.file.tolist(), splits.start.tolist(), splits.length.tolist(), strict=True
    ):
        found[file].append((start, start + length))
    return found


def boundaries(size: int, offsets: Sequence[int], suffix: str) -> set[int]:
    """Return every offset at which a file may be cut."""
    kind = NAMES[suffix]
    known = (
        len(offsets) > 1
        and offsets[0] >= 0
        and offsets[-1] < size
        and all(left < right for left, right in pairwise(offsets))
    )
    if kind != "whole" and known:
        return set(offsets[1:])
    return set(range(1, size)) if kind == "bytes" else set()


def can_keep_limit(begin: int, end: int, places: set[int], limit: int) -> bool:
    """Return whether cutting greedily from `begin` to `end` keeps all pieces within `limit`."""
    at = begin
    while end - at > limit:
        next_place = max((place for place in places if at < place <= at + limit), default=None)
        if next_place is None:
            return False
        at = next_place
    return True


options = given(cases(), st.integers(1, 60), st.integers(1, 60), st.integers(0, 20), st.booleans())


@SETTINGS
@options
def test_pieces_cover_every_byte_once_and_begin_at_allowed_offsets(
    case: tuple[list[int], list[list[int]], list[str]],
    limit: int,
    initial: int,
    count: int,
    level_tail: bool,
) -> None:
    found = all_pieces(case, limit, initial, count, level_tail)

    for pieces, size, offsets, suffix in zip(found, *case, strict=True):
        assert pieces[0][0] == 0
        assert pieces[-1][1] == size
        assert all(left[1] == right[0] for left, right in pairwise(pieces))
        assert all(begin < end for begin, end in pieces) or size == 0
        assert {begin for begin, _ in pieces[1:]} <= boundaries(size, offsets, suffix)


@SETTINGS
@options
def test_only_pieces_that_cannot_be_cut_exceed_their_limit(
    case: tuple[list[int], list[list[int]], list[str]],
    limit: int,
    initial: int,
    count: int,
    level_tail: bool,
) -> None:
    found = all_pieces(case, limit, initial, count, level_tail)

    spent = 0
    for pieces, size, offsets, suffix in zip(found, *case, strict=True):
        places = boundaries(size, offsets, suffix)
        for begin, end in pieces:
            allowed = min(initial, limit) if spent < count else limit
            spent += 1
            assert end - begin <= allowed or not any(begin < place < end for place in places)
        if spent <= count and can_keep_limit(0, size, places, min(initial, limit)):
            assert all(end - begin <= min(initial, limit) for begin, end in pieces)


@SETTINGS
@given(cases(), st.integers(1, 60))
def test_no_cut_is_needless_and_the_last_two_pieces_are_as_even_as_possible(
    case: tuple[list[int], list[list[int]], list[str]], limit: int
) -> None:
    found = all_pieces(case, limit, limit, 0, True)

    for pieces, size, offsets, suffix in zip(found, *case, strict=True):
        places = boundaries(size, offsets, suffix)
        for (begin, middle), (_, end) in pairwise(pieces):
            # Adjacent pieces would not fit into one.
            assert end - begin > limit
            if end < size:
                continue
            chosen = abs(2 * middle - begin - end)
            for place in places:
                if max(place - begin, end - place) <= limit and begin < place < end:
                    assert chosen <= abs(2 * place - begin - end) + 1


@SETTINGS
@given(
    st.lists(st.tuples(st.sets(st.integers(0, 90), min_size=1), st.integers(0, 60)), max_size=6),
    st.integers(1, 80),
    st.randoms(use_true_random=False),
)
def test_every_block_belongs_to_the_one_piece_that_holds_its_beginning(
    files: list[tuple[set[int], int]], limit: int, random: Random
) -> None:
    offsets = [sorted(blocks) for blocks, _ in files]
    table = inventory(
        [max(blocks) + 1 + more for blocks, more in files], row_group_offsets=offsets or None
    )
    splits = cut(table, np.arange(len(files)), limit)
    splits = splits.take(np.array(random.sample(range(len(splits.file)), len(splits.file)), int))

    firsts, counts = (blocks.to_pylist() for blocks in covered_blocks(table, splits))

    for at, (first, count) in enumerate(zip(firsts, counts, strict=True)):
        known = offsets[splits.file[at]]
        start, stop = splits.start[at], splits.start[at] + splits.length[at]
        is_whole = start == 0 and stop == table["size_bytes"][int(splits.file[at])].as_py()
        expected = [n for n, offset in enumerate(known) if start <= offset < stop]
        found = None if first is None else list(range(first, first + count))
        assert found == (None if is_whole else expected)
