"""Writes the row groups of a Parquet footer, all at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from windrow_core.files.excerpts.chunk_ranges import Ints
from windrow_core.files.excerpts.thrift import END, LIST, LONG, STRUCT, field, list_head

# Numbers take the same room in all row groups, so that these differ in nothing else. This many bytes
# of seven bits have room for any number of `chunk_ranges`, and for a sum of them.
_NUMBER_BYTES = 5
_SUM_BYTES = 9
_ROOM, _SUM_ROOM = bytes(_NUMBER_BYTES), bytes(_SUM_BYTES)


def row_groups(leaves: Sequence[bytes], groups: Ints) -> bytes:
    """Return row groups in Thrift, one after the other.

    Args:
        leaves: For each leaf, the beginning of the metadata of a chunk; see `OutlineColumn`.
        groups: Numbers of n row groups, as in plans; see `chunk_ranges`.
    """
    template = bytearray(field(LIST) + list_head(STRUCT, len(leaves)))
    places: list[int] = []

    def number(after: int = 1) -> None:
        template.extend(field(LONG, after))
        places.append(len(template))
        template.extend(_ROOM)

    for leaf in leaves:
        number(2)  # where it begins
        template.extend(field(STRUCT) + leaf)
        number()  # its values
        number()  # its bytes without compression, which nobody needs
        number()  # its bytes
        number(2)  # its first data page
        number(2)  # its dictionary; 0 for none
        template.extend(END + END)
    template.extend(field(LONG))
    sum_place = len(template)
    template.extend(_SUM_ROOM)
    number()  # rows
    template.extend(END)
    starts, lengths, dictionaries, values = (groups[:, 1 + at :: 4] for at in range(4))
    numbers = np.stack(
        (
            starts,
            values,
            lengths,
            lengths,
            starts + dictionaries,
            np.where(dictionaries > 0, starts, 0),
        ),
        axis=-1,
    ).reshape(len(groups), 6 * len(leaves))
    rows = np.tile(np.frombuffer(template, np.uint8), (len(groups), 1))
    in_places = np.array(places)[:, np.newaxis] + np.arange(_NUMBER_BYTES)
    rows[:, in_places] = _varints(np.column_stack((numbers, groups[:, 0])), _NUMBER_BYTES)
    rows[:, sum_place : sum_place + _SUM_BYTES] = _varints(lengths.sum(axis=1), _SUM_BYTES)
    return rows.tobytes()


def _varints(numbers: Ints, width: int) -> Ints:
    """Return non-negative numbers in Thrift, each in as many bytes, as a further axis."""
    sevens = (numbers << 1)[..., np.newaxis] >> 7 * np.arange(width) & 127
    sevens[..., :-1] |= 128
    return sevens
