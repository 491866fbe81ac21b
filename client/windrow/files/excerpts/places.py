"""Where the column chunks of a Parquet file lie, as numbers in inventories and plans.

For each row group: its rows, and for each leaf the place of its chunk, its bytes, those of its
dictionary, and its values. In inventories the place is the distance from the end of the chunk before,
which is 0 as a rule, so that all of them fit 32 bits; in plans it is counted from the file's start.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Ints = npt.NDArray[np.int64]

# The columns of inventories.
OUTLINE = pa.dictionary(pa.int32(), pa.string())
CHUNKS = pa.list_(pa.int32())

# A request for a few columns takes about as long as one for all of a file this small.
SMALL_FILE_BYTES = 256 * 2**10

# The longest file whose chunks are kept apart: 100 row groups of 200 columns.
MAX_CHUNKS = 20_000
_MAX_NUMBER = 2**31 - 1
_NUMBERS = 4  # of a chunk
_MAGIC_BYTES = 4


class Places(NamedTuple):
    """Where the column chunks of a file lie.

    Attributes:
        codecs: Those of its leaves.
        numbers: As in inventories.
    """

    codecs: tuple[str, ...]
    numbers: list[int]


def are_excerpted(location: str) -> bool:
    """Tell whether files of a location are read by ranges: those on object stores."""
    return location.startswith(("s3:", "gs:"))


def columns_of(leaf_count: int) -> int:
    """Return how many numbers there are of a row group."""
    return 1 + _NUMBERS * leaf_count


def places_in(metadata: Any, size_bytes: int) -> Places | None:
    """Return where the column chunks of a file lie.

    Args:
        metadata: A `pyarrow.parquet.FileMetaData`.
        size_bytes: Length of the file.

    Returns:
        None if chunks lie in an odd way: then the file is read as it is.
    """
    if not 0 < metadata.num_row_groups * metadata.num_columns <= MAX_CHUNKS:
        return None
    codecs: tuple[str, ...] | None = None
    numbers: list[int] = []
    starts: list[int] = []
    end = _MAGIC_BYTES
    for at in range(metadata.num_row_groups):
        group = metadata.row_group(at)
        chunks = [group.column(leaf) for leaf in range(group.num_columns)]
        found = tuple(chunk.compression for chunk in chunks)
        codecs = codecs or found
        if found != codecs or any(chunk.file_path for chunk in chunks):
            return None
        numbers.append(group.num_rows)
        for chunk in chunks:
            if not group.num_rows:
                # Some writers say of empty ones that they lie nowhere.
                numbers += (0, 0, 0, 0)
                continue
            # As Arrow does: some writers state 0 for a dictionary that is not there.
            data, dictionary = chunk.data_page_offset, chunk.dictionary_page_offset
            start = dictionary if dictionary is not None and 0 < dictionary < data else data
            length = chunk.total_compressed_size
            starts.append(start)
            numbers += (start - end, length, data - start, chunk.num_values)
            end = start + length
    if any(not -_MAX_NUMBER <= number <= _MAX_NUMBER for number in numbers):
        return None
    try:
        require_possible(in_plan(np.array(numbers), metadata.num_columns), size_bytes)
    except ValueError:
        return None
    assert codecs is not None
    return Places(codecs, numbers)


def in_plan(numbers: Ints, leaf_count: int, firsts: Ints | None = None) -> Ints:
    """Return the numbers of files as in plans: a row for each row group.

    Args:
        numbers: As in inventories.
        leaf_count: How many leaves each file has.
        firsts: For each row group, the first one of its file; None if all are of one file.
    """
    groups = numbers.reshape(-1, columns_of(leaf_count)).astype(np.int64)
    gaps, lengths = groups[:, 1::_NUMBERS], groups[:, 2::_NUMBERS]
    steps = gaps + lengths
    ends = np.cumsum(steps.reshape(-1)).reshape(gaps.shape)
    if firsts is not None:
        ends -= (ends[:, :1] - steps[:, :1])[firsts]
    groups[:, 1::_NUMBERS] = _MAGIC_BYTES + ends - lengths
    return groups


def columns_for(leaves: Sequence[int]) -> list[int]:
    """Return which columns of the numbers of row groups are those of some leaves."""
    return [0, *(1 + _NUMBERS * leaf + at for leaf in leaves for at in range(_NUMBERS))]


def read_bytes(groups: Ints) -> Ints:
    """Return the bytes of the chunks of each row group."""
    total: Ints = groups[:, 2::_NUMBERS].sum(axis=1)
    return total


def require_possible(groups: Ints, size_bytes: int) -> None:
    """Make sure that chunks lie inside a file, and none on another.

    Args:
        groups: As in plans.
        size_bytes: Length of the file.

    Raises:
        ValueError: They do not.
    """
    held = groups[groups[:, 0] != 0]
    starts, lengths, dictionaries, values = (held[:, 1 + at :: _NUMBERS] for at in range(_NUMBERS))
    possible = (
        (groups >= 0).all()
        and (starts >= _MAGIC_BYTES).all()
        and (starts <= size_bytes).all()
        and (lengths > 0).all()
        # Both are within bounds by now, so that the sum is.
        and (lengths <= size_bytes - starts).all()
        and (dictionaries < lengths).all()
        and (np.maximum(held[:, :1], values) <= _MAX_NUMBER).all()
    )
    if possible:
        order = np.argsort(starts, axis=None)
        begins, ends = starts.reshape(-1)[order], (starts + lengths).reshape(-1)[order]
        possible = (begins[1:] >= ends[:-1]).all()
    if not possible:
        raise ValueError("its column chunks cannot lie where its footer said")
