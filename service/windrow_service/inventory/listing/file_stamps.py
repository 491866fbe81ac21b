"""What tells a file from one of equal path, size and time that took its place.

That is its inode number and the time of its last change of any kind, which nobody can set back.
Both change as well where the content stays (another link to the file, another owner, a restored
disk): so another stamp says that a file is to be read again, not that it is another.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from windrow.files.arrays import flat
from windrow_service.planner.caching.file_keys import file_keys
from windrow_service.planner.pruning.bounds import Bools
from windrow_service.planner.splits import Hashes

_DIGEST_BYTES = 16
_LENGTH = struct.Struct("<Q")
_WORD = np.dtype("<u8")


@dataclass(frozen=True, slots=True, eq=False)
class FileStamps:
    """The stamps of n files.

    Attributes:
        keys: Of the files by path, size and time, ascending.
        stamps: Of each.
    """

    keys: Hashes
    stamps: Hashes

    def of(self, keys: Hashes) -> pa.Array:
        """Return the stamps of files with these keys (uint64); null where unknown."""
        if not len(self.keys):
            return pa.nulls(len(keys), pa.uint64())
        at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return pa.array(self.stamps[at], mask=self.keys[at] != keys)


_NONE = FileStamps(np.empty(0, np.uint64), np.empty(0, np.uint64))


def compare_stamps(files: pa.Table, known: FileStamps) -> tuple[Bools, FileStamps]:
    """Tell of n files which have another stamp than before, and what the stamps are now.

    Args:
        files: `LISTING_SCHEMA` and `stamp`, null where the file was not looked at.
        known: Stamps from before.
    """
    keys = file_keys(files)
    now, before = flat(files["stamp"]), known.of(keys)
    replaced = pc.fill_null(pc.not_equal(now, before), False)
    stamps = pc.coalesce(now, before)
    valid = stamps.is_valid().to_numpy(zero_copy_only=False)
    keys, told = keys[valid], stamps.drop_null().to_numpy()
    order = np.argsort(keys)
    return (
        replaced.to_numpy(zero_copy_only=False),
        FileStamps(keys=keys[order], stamps=told[order]),
    )


def join_state(folders: bytes, files: FileStamps) -> bytes:
    """Return what is kept between listings: the state of folders, and the stamps of files."""
    numbers = [column.astype(_WORD).tobytes() for column in (files.keys, files.stamps)]
    body = b"".join([_LENGTH.pack(len(folders)), folders, *numbers])
    return xxhash.xxh3_128_digest(body) + body


def split_state(state: bytes | None) -> tuple[bytes, FileStamps]:
    """Return what `join_state` was given; nothing if it is damaged, or of another version."""
    if state is None or state[:_DIGEST_BYTES] != xxhash.xxh3_128_digest(state[_DIGEST_BYTES:]):
        return b"", _NONE
    start = _DIGEST_BYTES + _LENGTH.size
    (length,) = _LENGTH.unpack_from(state, _DIGEST_BYTES)
    if length > len(state) - start or (len(state) - start - length) % (2 * _WORD.itemsize):
        return b"", _NONE
    keys, stamps = np.frombuffer(state, _WORD, offset=start + length).reshape(2, -1)
    return state[start : start + length], FileStamps(keys=keys, stamps=stamps)
