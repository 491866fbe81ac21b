"""Deletion vectors and files of positions, as engines write them."""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap

_MAGIC = struct.pack("<I", 1681511377)


def bitmap(positions: Iterable[int], *, runs: bool = True) -> bytes:
    """Return positions as the bitmap of a deletion vector."""
    by_key: dict[int, BitMap] = {}
    for position in positions:
        by_key.setdefault(position >> 32, BitMap()).add(position & 0xFFFFFFFF)
    content = _MAGIC + struct.pack("<Q", len(by_key))
    for key, low in sorted(by_key.items()):
        if runs:
            low.run_optimize()
        content += struct.pack("<I", key) + low.serialize()
    return content


def inline_vector(positions: Iterable[int], *, runs: bool = True) -> dict[str, Any]:
    """Return a deletion vector that the log itself holds, as inventories record it."""
    text = base64.b64encode(bitmap(positions, runs=runs)).decode()
    return {"kind": "vector", "inline": text}


def file_vector(path: Path, relative: str, positions: Iterable[int]) -> dict[str, Any]:
    """Append a deletion vector to a file, and return it as inventories record it."""
    content = bitmap(positions)
    offset = path.stat().st_size if path.exists() else 0
    with path.open("ab") as file:
        file.write(content)
    return {"kind": "vector", "path": relative, "offset": offset, "length": len(content)}


def position_file(
    path: Path, relative: str, deletions: Iterable[tuple[str, int]]
) -> dict[str, Any]:
    """Write a file of positions, and return it as inventories record it."""
    paths, positions = zip(*deletions, strict=True)
    columns = {"file_path": pa.array(paths, pa.string()), "pos": pa.array(positions, pa.int64())}
    pq.write_table(pa.table(columns), path)
    return {"kind": "positions", "path": relative, "size_bytes": path.stat().st_size}
