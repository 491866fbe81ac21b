"""What files are, told by how they begin."""

from __future__ import annotations

import json
import os
import zlib

import pyarrow as pa

from windrow_core.files.formats import FORMATS
from windrow_core.files.remote import read_whole_file
from windrow_core.files.table_paths import absolute_path

_HEAD_BYTES = 64 * 2**10
_MAGIC = {b"PAR1": "parquet", b"ORC": "orc", b"Obj\x01": "avro"}
_GZIP = b"\x1f\x8b"
_COMPRESSIONS = (".gz", ".bz2", ".zst", ".zstd", ".lz4", ".snappy", ".deflate", ".br", ".xz")
_SUFFIXES = {
    ".csv": "csv",
    ".tsv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".txt": "text",
    ".log": "text",
}
_SEPARATORS = ",;\t|"
# So many files of a table are looked at, from all over it.
_LOOKED_AT = 8


def kind_of(path: str, head: bytes) -> str | None:
    """Return the format of a file, given how it begins; None if it cannot be told."""
    for magic, kind in _MAGIC.items():
        if head.startswith(magic):
            return kind
    name, suffix = os.path.splitext(path.lower())
    if suffix in _COMPRESSIONS:
        suffix = os.path.splitext(name)[1]
    if head.startswith(_GZIP):
        try:
            head = zlib.decompressobj(wbits=31).decompress(head, _HEAD_BYTES)
        except zlib.error:
            return None
    try:
        # A character may be cut off at the end.
        text = head.decode("utf-8", "strict" if len(head) < _HEAD_BYTES - 4 else "ignore")
    except UnicodeDecodeError:
        return _SUFFIXES.get(suffix)
    lines = [line for line in text.splitlines() if line.strip()]
    if "\0" in text or not lines:
        return _SUFFIXES.get(suffix)
    if _is_document(lines[0]):
        return "json"
    if suffix in _SUFFIXES:
        return _SUFFIXES[suffix]
    first, *others = lines[:3]
    is_divided = any(
        first.count(one) and all(line.count(one) == first.count(one) for line in others)
        for one in _SEPARATORS
    )
    return "csv" if is_divided else "text"


def other_kind(location: str, paths: pa.ChunkedArray, table_format: str) -> str | None:
    """Return the format that files of a table have instead of the table's; None if not all have it.

    Args:
        location: Absolute path of the table's folder, or its URI.
        paths: Files of the table, as in inventories; a few of them are looked at.
        table_format: The format that they should have. Whether text is CSV or JSON is not asked of
            tables of lines.
    """
    last = len(paths) - 1
    rows = sorted({last * nth // (_LOOKED_AT - 1) for nth in range(_LOOKED_AT)})
    kinds = set()
    for path in paths.take(pa.array(rows)).to_pylist():
        try:
            head = read_whole_file(absolute_path(location, path), _HEAD_BYTES)
        except OSError:
            return None
        kinds.add(kind_of(path, head))
    kind = kinds.pop() if len(kinds) == 1 else None
    if kind == table_format or (FORMATS[table_format].has_lines and kind not in _MAGIC.values()):
        return None
    return kind


def _is_document(line: str) -> bool:
    if not line.lstrip().startswith("{"):
        return False
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False
