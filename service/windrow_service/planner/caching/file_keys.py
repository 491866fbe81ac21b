"""Keys of data files, and which worker holds the file of each key.

A key is a 64-bit hash of a file's path, size and time of change. Among 1,000,000 files of a table
the odds that any two share a key are 1 to 37,000,000. A collision only means that one of them is
planned at a worker that does not hold it; it is read correctly all the same.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow_service.planner.fingerprints import mix
from windrow_service.planner.splits import Hashes

# Number of paths hashed at a time, small enough for intermediate arrays to fit the CPU caches.
_BLOCK = 2**15
_WORD = 8
# The first n bytes of a little-endian word.
_LEADING = np.array([(1 << (8 * n)) - 1 for n in range(_WORD + 1)], np.uint64)
# Odd, from the golden ratio (Knuth, The Art of Computer Programming, 6.4).
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True)
class Holding:
    """The files of one table that one worker holds.

    Attributes:
        host: The host that the worker runs on.
        capacity_bytes: Most bytes that the worker keeps, for all tables together.
        keys: Keys of the files, ascending, each once.
    """

    host: str
    capacity_bytes: int
    keys: Hashes


def file_keys(files: pa.Table) -> Hashes:
    """Return the key of each file, from its `path`, `size_bytes` and `mtime_ns`.

    Keys are stored outside the process, so they depend neither on the machine nor on how the
    columns are chunked. If this function changes, store the keys under another name.
    """
    chunks = [_hash_texts(chunk) for chunk in files["path"].chunks if len(chunk)]
    keys = np.concatenate(chunks) if chunks else np.empty(0, np.uint64)
    for name in ("size_bytes", "mtime_ns"):
        keys = mix(keys ^ files[name].to_numpy().view(np.uint64))
    return keys


def _hash_texts(texts: pa.StringArray) -> Hashes:
    _, offsets, data = texts.buffers()
    begin = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    bytes_ = np.frombuffer(data or b"", np.uint8)
    blocks = range(0, len(texts), _BLOCK)
    return np.concatenate([_hash_block(begin[at : at + _BLOCK + 1], bytes_) for at in blocks])


def _hash_block(begin: npt.NDArray[np.int32], data: npt.NDArray[np.uint8]) -> Hashes:
    """Hash texts eight bytes at a time: multiply, and fold the upper half into the lower."""
    size = int(begin[-1] - begin[0])
    padded = np.zeros(size + _WORD, np.uint8)
    padded[:size] = data[begin[0] : begin[-1]]
    # A word at every byte.
    words: Hashes = np.ndarray((size + 1,), np.dtype("<u8"), padded, strides=(1,))
    at = (begin[:-1] - begin[0]).astype(np.int64)
    left = np.diff(begin).astype(np.int64)
    hashes = left.astype(np.uint64)
    whole = int(left.min()) // _WORD
    for _ in range(whole):
        hashes = _fold(hashes ^ words[at])
        at += _WORD
    left -= whole * _WORD
    rows = np.flatnonzero(left)
    while len(rows):
        word = words[at[rows]] & _LEADING[np.minimum(left[rows], _WORD)]
        hashes[rows] = _fold(hashes[rows] ^ word)
        at[rows] += _WORD
        left[rows] -= _WORD
        rows = rows[left[rows] > 0]
    return hashes


def _fold(words: Hashes) -> Hashes:
    words = words * _MULTIPLIER
    words ^= words >> np.uint64(32)
    return words
