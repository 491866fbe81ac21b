"""Deletion vectors of Delta files, as they are stored: with their length and a checksum."""

from __future__ import annotations

import base64
import struct
import zlib
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow as pa

from windrow_core.files.arrays import flat
from windrow_core.files.places import read_file
from windrow_core.files.remote import why_unreadable
from windrow_core.files.table_paths import home_and_path
from windrow_core.sizes import size_text
from windrow_service.delta.errors import DeltaLogError

# Before a vector there is its length, and behind it the checksum.
_LENGTH_BYTES = 4
_FRAME_BYTES = 8
_MAGIC = (1681511377).to_bytes(4, "little")
# All vectors that are in memory together.
_MAX_BYTES = 2**30
# What lies between two vectors is read if it is shorter than this.
_MAX_GAP = 2**16
_MAX_PIECE = 2**23
_THREADS = 16


@dataclass(slots=True)
class _Piece:
    """A part of a file of vectors, which is read at once.

    Attributes:
        begin: The first byte.
        end: The byte after the last.
        vectors: The numbers of the vectors that it holds, and where they begin in the file.
    """

    begin: int
    end: int
    vectors: list[tuple[int, int, int]]


def framed_vectors(location: str, deletes: pa.Array) -> list[bytes]:
    """Return deletion vectors with their lengths and checksums; files of Iceberg have the same bytes.

    Args:
        location: Location of the table.
        deletes: n vectors, as in inventories.

    Raises:
        DeltaLogError: A vector cannot be read, or is damaged.
    """
    rows = flat(deletes).to_pylist()
    if sum(row["length"] + _FRAME_BYTES for row in rows) > _MAX_BYTES:
        raise DeltaLogError(
            location,
            f"has deletion vectors of more than {size_text(_MAX_BYTES)} for files that are described "
            "together: rewrite such files (`REORG TABLE … APPLY (PURGE)`)",
        )
    frames: list[bytes] = [b""] * len(rows)
    places: defaultdict[str, list[tuple[int, int, int]]] = defaultdict(list)
    for number, row in enumerate(rows):
        if row["inline"] is None:
            begin = row["offset"] - _LENGTH_BYTES
            places[row["path"]].append((begin, row["length"] + _FRAME_BYTES, number))
        else:
            frames[number] = _framed(base64.b64decode(row["inline"]))
    pieces = [(path, piece) for path, some in places.items() for piece in _pieces(sorted(some))]

    def read(path: str, piece: _Piece) -> None:
        content = _read(location, path, piece.begin, piece.end)
        for begin, length, number in piece.vectors:
            at = begin - piece.begin
            frames[number] = content[at : at + length]

    with ThreadPoolExecutor(_THREADS) as threads:
        for _ in threads.map(lambda pair: read(*pair), pieces):
            pass
    for row, frame in zip(rows, frames, strict=True):
        if not _is_whole(frame, row["length"]):
            place = "its log" if row["path"] is None else repr(row["path"])
            raise DeltaLogError(
                location, f"is damaged: {place} has a deletion vector that is not valid; restore it"
            )
    return frames


def _framed(vector: bytes) -> bytes:
    return struct.pack(">I", len(vector)) + vector + struct.pack(">I", zlib.crc32(vector))


def _is_whole(frame: bytes, length: int) -> bool:
    vector = frame[_LENGTH_BYTES:-_LENGTH_BYTES]
    return len(vector) == length and vector.startswith(_MAGIC) and _framed(vector) == frame


def _pieces(places: Sequence[tuple[int, int, int]]) -> list[_Piece]:
    pieces: list[_Piece] = []
    for begin, length, number in places:
        end = begin + length
        last = pieces[-1] if pieces else None
        if last is None or begin - last.end > _MAX_GAP or end - last.begin > _MAX_PIECE:
            last = _Piece(begin, begin, [])
            pieces.append(last)
        last.end = max(last.end, end)
        last.vectors.append((begin, length, number))
    return pieces


def _read(location: str, path: str, begin: int, end: int) -> bytes:
    try:
        return bytes(read_file(*home_and_path(location, path), None, begin, end).content)
    except OSError as error:
        raise DeltaLogError(
            location, f"has deletion vectors in {path!r}, which {why_unreadable(error)}"
        ) from error
