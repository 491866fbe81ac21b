"""Reads the columns of a few Avro files from their headers.

A header is `Obj`, a version, a map of metadata, whose `avro.schema` is the schema as JSON, and a
marker. It does not state the number of rows, which only reading the whole file would show.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pyarrow as pa

from windrow_core.files.chunks import ChunkFooters, FooterGroup, Tail, read_ones, unread_rows
from windrow_core.files.errors import RESTORE
from windrow_core.files.limits import USUAL_LIMITS, ReadLimits, TooWideError, refuse_wide_json
from windrow_core.files.objects.troubles import ChangedObjectError
from windrow_core.files.places import read_file, why_unread
from windrow_core.files.schema import FileSchema
from windrow_core.files.status import FileStatus
from windrow_core.files.table_paths import home_and_path
from windrow_service.avro.schemas import AvroSchemaError, avro_columns

_MAGIC = b"Obj\x01"
# Read first; a longer header is read again in full.
_SHORT_BYTES = 2**16
_THREADS = 8
# Most entries in the map of metadata.
_MAX_ENTRIES = 10_000


def schema_text(header: bytes) -> bytes:
    """Return the schema in the first bytes of an Avro file.

    Args:
        header: These bytes: at least the whole header.

    Raises:
        EOFError: The header is longer than these bytes.
        ValueError: The bytes are not a header of Avro.
    """
    text = header_of(header)[0].get(b"avro.schema")
    if text is None:
        raise ValueError("its header has no schema")
    return text


def header_of(content: bytes) -> tuple[Mapping[bytes, bytes], int]:
    """Return the metadata in an Avro file's header, and where its marker begins.

    Args:
        content: The first bytes of the file: at least the whole header.

    Raises:
        EOFError: The header is longer than these bytes.
        ValueError: The bytes are not a header of Avro.
    """
    if content[: len(_MAGIC)] != _MAGIC[: len(content)]:
        raise ValueError("it is not Avro: it does not begin like an Avro file")
    at, entries = len(_MAGIC), 0
    metadata: dict[bytes, bytes] = {}
    while True:
        count, at = read_long(content, at)
        if count < 0:
            # The size of the block follows, which is not needed.
            count = -count
            _, at = read_long(content, at)
        if not count:
            return metadata, at
        entries += count
        if entries > _MAX_ENTRIES:
            raise ValueError(f"its header has more than {_MAX_ENTRIES:,} entries")
        for _ in range(count):
            name, at = _bytes(content, at)
            metadata[name], at = _bytes(content, at)


def read_long(data: bytes, at: int) -> tuple[int, int]:
    """Return the number at an offset, zigzag-coded in 7 bits per byte, and the offset after it."""
    number = shift = 0
    while True:
        if at >= len(data):
            raise EOFError
        byte = data[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return (number >> 1) ^ -(number & 1), at
        shift += 7
        if shift > 63:
            raise ValueError("its header is damaged")


def _bytes(data: bytes, at: int) -> tuple[bytes, int]:
    length, at = read_long(data, at)
    if length < 0:
        raise ValueError("its header is damaged")
    if at + length > len(data):
        raise EOFError
    return data[at : at + length], at + length


def read_chunk(
    location: str,
    first_row: int,
    paths: Sequence[str],
    states: Sequence[FileStatus],
    *,
    limits: ReadLimits = USUAL_LIMITS,
) -> ChunkFooters:
    """Read the headers of n Avro files, like `windrow_core.files.chunks.read_chunk` for Parquet."""
    read = partial(_schema_tail, location, limits.footer_bytes)
    with ThreadPoolExecutor(min(_THREADS, len(paths))) as threads:
        texts = list(threads.map(read, paths, states))
    chunk = ChunkFooters()
    rows: dict[bytes, list[int]] = {}
    schemas: dict[bytes, FileSchema] = {}
    for index, path, text in read_ones(chunk, paths, states, texts):
        try:
            if text not in schemas:
                refuse_wide_json(text, limits.fields)
                schemas[text] = FileSchema(avro_columns(text, limits.fields), path)
            rows.setdefault(text, []).append(first_row + index)
        except (AvroSchemaError, TooWideError) as error:
            chunk.blame(path, error)
    chunk.groups = [
        FooterGroup(schemas[text], pa.schema([]), unread_rows(numbers))
        for text, numbers in rows.items()
    ]
    return chunk


def _schema_tail(location: str, max_bytes: int, path: str, state: FileStatus) -> Tail:
    """Return the schema of a file, or why it cannot be read, in the form of a `Tail`."""
    home, absolute = home_and_path(location, path)
    try:
        if not state.size_bytes:
            return b""
        for most in (min(_SHORT_BYTES, max_bytes), max_bytes):
            part = read_file(home, absolute, state, end=min(most, state.size_bytes))
            if state.difference(part.state):
                return None
            header = bytes(part.content)
            try:
                return schema_text(header)
            except EOFError:
                if len(header) == state.size_bytes:
                    return f"its header is cut off: part of the file is missing; {RESTORE}"
        return (
            f"its header has more than {max_bytes:,} bytes: raise WINDROW_LIMITS__MAX_FOOTER_BYTES"
        )
    except (FileNotFoundError, ChangedObjectError):
        return None
    except OSError as error:
        return why_unread(absolute, error)
    except ValueError as error:
        return f"{error}: {RESTORE}"
