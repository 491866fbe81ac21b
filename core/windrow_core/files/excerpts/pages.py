"""Counts the values in the pages of many column chunks, from the heads of the pages."""

from __future__ import annotations

import numpy as np

from windrow_core.files.excerpts.lanes import Bytes, Ints, Lanes, Mask
from windrow_core.files.excerpts.thrift import INT, STRUCT, ThriftError

# Chunks with more pages are not of small files.
_MAX_PAGES = 64
_MAX_SHAPES = 8

# Fields of Parquet's PageHeader; each type of data page has its own, whose first field counts values.
_TYPE, _BYTES = 1, 3
_DATA_PAGES = {5: 0, 8: 3}
_VALUES = 1


def hold_their_values(data: Bytes, begins: Ints, lengths: Ints, values: Ints) -> Mask:
    """Return which chunks have pages with as many values as the footer says.

    A reader of several chunks would go on with what one of them has too much, or with the next one
    where it has too little.

    Args:
        data: Bytes with all chunks.
        begins: Where each begins; n offsets.
        lengths: The bytes of each.
        values: The number of values of each, as its footer says.
    """
    at, ends, left = begins.copy(), begins + lengths, values.copy()
    is_sound = left > 0
    for _ in range(_MAX_PAGES):
        pending = np.flatnonzero(is_sound & (left > 0))
        if not len(pending):
            break
        for _ in range(_MAX_SHAPES):
            if not len(pending):
                break
            heads = Lanes(data, at[pending], ends[pending])
            try:
                page_bytes, page_values = _page(heads)
            except ThriftError:
                is_sound[pending[0]] = False
                pending = pending[1:]
                continue
            alike = heads.alike
            chunks = pending[alike]
            room = ends[chunks] - heads.at[alike]
            is_sound[chunks] = (
                (page_bytes[alike] >= 0)
                & (page_bytes[alike] <= room)
                & (page_values[alike] >= 0)
                & (page_values[alike] <= left[chunks])
            )
            at[chunks] = heads.at[alike] + page_bytes[alike]
            left[chunks] -= page_values[alike]
            pending = pending[~alike]
        is_sound[pending] = False
    is_whole: Mask = is_sound & (left == 0)
    return is_whole


def _page(heads: Lanes) -> tuple[Ints, Ints]:
    """Take the head of a page of each chunk, and return its bytes and values."""
    page_type: int | None = None
    page_bytes: Ints | None = None
    page_values = np.zeros(len(heads.at), np.int64)
    for number, kind in heads.fields():
        if (number, kind) == (_TYPE, INT) and page_type is None:
            page_type = heads.same_integer()
        elif (number, kind) == (_BYTES, INT):
            page_bytes = heads.integers()
        elif number == _TYPE or page_type != _DATA_PAGES.get(number, page_type):
            # Readers pass over what is not of the page's type.
            raise ThriftError
        elif number in _DATA_PAGES and kind == STRUCT:
            for own_number, own_kind in heads.fields():
                if (own_number, own_kind) == (_VALUES, INT):
                    page_values = heads.integers()
                else:
                    heads.skip(own_kind)
        else:
            heads.skip(kind)
    if page_bytes is None:
        raise ThriftError
    return page_bytes, page_values
