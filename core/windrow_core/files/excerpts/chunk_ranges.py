"""Where the column chunks of a Parquet file lie, as numbers in inventories and plans.

In plans, each row group has the number of its rows and, for each leaf, the offset of its chunk, the
bytes of the chunk, the bytes of its dictionary, and the number of its values. In inventories, all
numbers have 32 bits: the offset of the row group follows its rows, as two numbers, and offsets of
chunks count from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

# A request for a few columns takes about as long as a request for a whole file of this size.
WHOLE_FILE_BYTES = 256 * 2**10

# Chunks of files with more than this are not recorded: 100 row groups of 200 columns.
MAX_CHUNKS = 20_000
_MAX_NUMBER = 2**31 - 1
_NUMBERS = 4  # per chunk
_HEAD = 3  # per row group in inventories, before the numbers of its chunks
_MAGIC_BYTES = 4


class ChunkRanges(NamedTuple):
    """Where the column chunks of a file lie.

    Attributes:
        codecs: Codecs of its leaves.
        numbers: Numbers as in inventories.
    """

    codecs: tuple[str, ...]
    numbers: list[int]


def columns_of(leaf_count: int) -> int:
    """Return how many numbers a plan has for a row group."""
    return 1 + _NUMBERS * leaf_count


def kept_columns_of(leaf_count: int) -> int:
    """Return how many numbers an inventory has for a row group."""
    return _HEAD + _NUMBERS * leaf_count


def chunk_ranges_in(metadata: Any, size_bytes: int) -> ChunkRanges | None:
    """Return where the column chunks of a file lie.

    Args:
        metadata: A `pyarrow.parquet.FileMetaData`.
        size_bytes: Length of the file.

    Returns:
        The ranges; None if chunks lie in an unusual way, so that the file is read as it is.
    """
    if not 0 < metadata.num_row_groups * metadata.num_columns <= MAX_CHUNKS:
        return None
    codecs: tuple[str, ...] | None = None
    numbers: list[int] = []
    for at in range(metadata.num_row_groups):
        group = metadata.row_group(at)
        chunks = [group.column(leaf) for leaf in range(group.num_columns)]
        own_codecs = tuple(chunk.compression for chunk in chunks)
        codecs = codecs or own_codecs
        if own_codecs != codecs or any(chunk.file_path for chunk in chunks):
            return None
        # Some writers give impossible offsets for chunks without rows.
        own = [_chunk(chunk) if group.num_rows else (0, 0, 0, 0) for chunk in chunks]
        begin = min(chunk[0] for chunk in own)
        numbers += (group.num_rows, *divmod(begin, _MAX_NUMBER))
        for start, *rest in own:
            numbers += (start - begin, *rest)
    if any(not 0 <= number <= _MAX_NUMBER for number in numbers):
        return None
    try:
        begins = np.arange(0, len(numbers), kept_columns_of(metadata.num_columns))
        groups = in_plan(np.array(numbers, np.int32), begins, range(metadata.num_columns))
        require_possible(groups, size_bytes)
    except ValueError:
        return None
    assert codecs is not None
    return ChunkRanges(codecs, numbers)


def _chunk(chunk: Any) -> tuple[int, int, int, int]:
    # As in Arrow: some writers state 0 for a missing dictionary.
    data, dictionary = chunk.data_page_offset, chunk.dictionary_page_offset
    start = dictionary if dictionary is not None and 0 < dictionary < data else data
    return start, chunk.total_compressed_size, data - start, chunk.num_values


def in_plan(numbers_of_all: npt.NDArray[np.int32], at: Ints, leaves: Sequence[int]) -> Ints:
    """Return the numbers of some leaves as in plans: a row for each row group.

    Args:
        numbers_of_all: Numbers of all leaves, as in inventories.
        at: Where the numbers of each row group begin among them.
        leaves: Positions of the leaves.
    """
    own = [0, *(_HEAD + _NUMBERS * leaf + nth for leaf in leaves for nth in range(_NUMBERS))]
    numbers: Ints = numbers_of_all[at[:, np.newaxis] + own].astype(np.int64)
    begins = numbers_of_all[at + 1].astype(np.int64) * _MAX_NUMBER + numbers_of_all[at + 2]
    numbers[:, 1::_NUMBERS] += begins[:, np.newaxis]
    return numbers


def columns_for(leaves: Sequence[int]) -> list[int]:
    """Return the positions of some leaves' numbers among a plan's numbers of a row group."""
    return [0, *(1 + _NUMBERS * leaf + at for leaf in leaves for at in range(_NUMBERS))]


def read_bytes(groups: Ints) -> Ints:
    """Return the bytes of the chunks of each row group."""
    total: Ints = groups[:, 2::_NUMBERS].sum(axis=1)
    return total


def require_possible(groups: Ints, size_bytes: int) -> None:
    """Make sure that chunks lie inside a file and do not overlap.

    Args:
        groups: Numbers as in plans; row groups without rows may have any.
        size_bytes: Length of the file.
    """
    with_rows = groups[groups[:, 0] != 0]
    if (groups < 0).any() or not are_possible(with_rows[np.newaxis], np.array([size_bytes])).all():
        raise ValueError("its column chunks cannot lie where its footer said")


def are_possible(groups: Ints, ends: Ints) -> npt.NDArray[np.bool_]:
    """Return for n files whether chunks lie inside of them and do not overlap.

    Args:
        groups: Numbers as in plans, n x row groups x numbers; each row group has rows.
        ends: Where chunks must have ended, for each file.
    """
    starts, lengths, dictionaries, values = (
        groups[:, :, 1 + at :: _NUMBERS].reshape(len(groups), -1) for at in range(_NUMBERS)
    )
    ends = ends[:, np.newaxis]
    possible = (
        (starts >= _MAGIC_BYTES)
        & (starts <= ends)
        & (lengths > 0)
        # Both are within bounds here, so their sum is, too.
        & (lengths <= ends - starts)
        & (dictionaries >= 0)
        & (dictionaries < lengths)
        & (values >= 0)
        & (values <= _MAX_NUMBER)
    ).all(axis=1) & ((groups[:, :, 0] > 0) & (groups[:, :, 0] <= _MAX_NUMBER)).all(axis=1)
    order = np.argsort(starts, axis=1)
    begins = np.take_along_axis(starts, order, axis=1)
    own_ends = begins + np.take_along_axis(lengths, order, axis=1)
    own: npt.NDArray[np.bool_] = np.logical_and(
        possible, (begins[:, 1:] >= own_ends[:, :-1]).all(axis=1)
    )
    return own
