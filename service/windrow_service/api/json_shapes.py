"""How many values and keys a JSON body has, and how deep they lie, before it is decoded.

What a body costs depends on these more than on its bytes: a list of `1,1,1,…` takes a hundred times
its size in memory, and an unknown key becomes an error with a text of its own. The bytes are scanned
in columns, which takes some milliseconds per megabyte and does not hold the interpreter lock.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from windrow_service.api.errors import SEND_LESS, BodyTooComplexError

_Kinds = NDArray[np.uint8]
_OPEN, _CLOSE, _COMMA, _COLON = 1, 2, 3, 4
_KINDS = np.zeros(256, np.uint8)
for _kind, _characters in ((_OPEN, b"[{"), (_CLOSE, b"]}"), (_COMMA, b","), (_COLON, b":")):
    _KINDS[list(_characters)] = _kind
# How each kind changes the depth.
_STEPS = np.array([0, 1, -1, 0, 0], np.int8)
_QUOTE = ord('"')
_CHUNK_BYTES = 2**20
SEND_ARROW = f"{SEND_LESS}, or send an Arrow stream, which may be much longer"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeLimits:
    """Most parts of one JSON body.

    Attributes:
        values: Most values, including lists and objects.
        containers: Most lists and objects, which take the most time and memory.
        keys: Most keys of all objects together.
        object_keys: Most keys of one object.
        depth: Most lists and objects inside one another.
        remedy: What a caller can do about a body that has more.
    """

    values: int
    containers: int
    keys: int
    # As many as columns of a file can have statistics: more is allowed nowhere.
    object_keys: int = 10_000
    depth: int = 500
    remedy: str = SEND_LESS

    def refuse_above(self, most: int, count: int, what: str) -> None:
        """Refuse a body that has more of something than is allowed."""
        if count > most:
            raise BodyTooComplexError(most, what, self.remedy)


# Room for 20,000 files that a worker reports, or a table of 10,000 columns.
ORDINARY = ShapeLimits(values=1_000_000, containers=65_000, keys=65_000)
# Room for 100,000 keys of a write plan, as columns.
COLUMNS = ShapeLimits(values=4_000_000, containers=65_000, keys=65_000)
# Room for 10,000 partitions.
PARTITIONS = replace(COLUMNS, remedy=SEND_ARROW)
# Room for 10,000 files with statistics of 20 columns.
FILES = ShapeLimits(values=4_000_000, containers=250_000, keys=1_000_000, remedy=SEND_ARROW)


def check_shape(body: bytes, limits: ShapeLimits) -> None:
    """Make sure that a JSON body is within limits; a body that is no JSON may also pass."""
    if len(body) <= limits.depth:
        return
    chunks = []
    values = containers = keys = 0
    for kinds in _structure(body):
        # Counted chunk by chunk, so that a body far beyond its limits takes no memory.
        counts = np.bincount(kinds, minlength=5)
        containers += int(counts[_OPEN])
        values += int(counts[_OPEN] + counts[_COMMA])
        keys += int(counts[_COLON])
        limits.refuse_above(limits.containers, containers, "lists and objects")
        limits.refuse_above(limits.values, values, "values")
        limits.refuse_above(limits.keys, keys, "keys")
        chunks.append(kinds)
    structure = np.concatenate(chunks)
    depths = np.cumsum(_STEPS[structure], dtype=np.int32)
    limits.refuse_above(limits.depth, int(depths.max(initial=0)), "levels of lists and objects")
    limits.refuse_above(limits.object_keys, _most_keys(structure, depths), "keys in one object")


def _structure(body: bytes) -> Iterator[_Kinds]:
    """Return the kinds of the brackets, commas and colons outside texts, in chunks."""
    if b"\\" in body:
        # An escaped quote does not end a text. Lengths stay as they are, which is quickest.
        body = body.replace(rb"\\", b"__").replace(rb"\"", b"__")
    in_text = np.uint8(0)
    for start in range(0, len(body), _CHUNK_BYTES):
        count = min(_CHUNK_BYTES, len(body) - start)
        part = np.frombuffer(body, np.uint8, count, start)
        inside = np.bitwise_xor.accumulate((part == _QUOTE).view(np.uint8)) ^ in_text
        in_text = inside[-1]
        kinds = _KINDS[part]
        yield kinds[(kinds != 0) & (inside == 0)]


def _most_keys(structure: _Kinds, depths: NDArray[np.int32]) -> int:
    """Return the number of keys of the object with the most keys."""
    mask = (structure == _OPEN) | (structure == _COLON)
    # In this order, the colons of each object directly follow its bracket.
    order = np.argsort(depths[mask].astype(np.int16), kind="stable")
    opens = np.flatnonzero(structure[mask][order] == _OPEN)
    return int(np.diff(opens, append=order.size).max(initial=1)) - 1
