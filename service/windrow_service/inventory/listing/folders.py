"""The state of a location's folders at a listing, so that only changed ones are listed again.

A folder's times change when a name in it is created, removed or replaced, not when a file is
rewritten in place. Changes within one clock tick cannot be distinguished. So a time is only trusted
if it was well before the moment of listing, as git does with the files of its index.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import pyarrow as pa
import xxhash

from windrow_core.files.table_paths import absolute_path

# Increment when the meaning of the state changes; state of other versions is not used.
_VERSION = b"2"
_DIGEST_BYTES = 16
_STATE_SCHEMA = pa.schema(
    [
        pa.field("path", pa.string(), nullable=False),
        # All null if the folder must be listed again in any case.
        pa.field("mtime_ns", pa.int64()),
        pa.field("ctime_ns", pa.int64()),
        pa.field("inode", pa.uint64()),
        pa.field("device", pa.uint64()),
    ]
)

# The coarsest clock of a file system in use (FAT) ticks every 2 s.
_MARGIN_NS = 2 * 10**9


class Stamp(NamedTuple):
    """Identifies a folder with a certain set of names."""

    mtime_ns: int
    ctime_ns: int
    inode: int
    device: int


@dataclass(frozen=True, slots=True)
class KnownFolders:
    """The folders of an earlier listing.

    Attributes:
        stamps: By path relative to the location; only stamps that can be trusted.
        children: The direct subfolders of each folder, by its path.
    """

    stamps: Mapping[str, Stamp] = field(default_factory=dict)
    children: Mapping[str, list[str]] = field(default_factory=dict)


def read_stamp(location: str, folder: str) -> Stamp:
    """Return the current stamp of a folder."""
    # Open it: NFS then asks the server, while it may answer a plain `stat` from memory.
    descriptor = os.open(absolute_path(location, folder), os.O_RDONLY | os.O_DIRECTORY)
    try:
        status = os.fstat(descriptor)
    finally:
        os.close(descriptor)
    return Stamp(status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_dev)


def can_be_trusted(stamp: Stamp, read_at_ns: int, device: int) -> bool:
    """Return whether any later change of a folder is certain to change its stamp.

    Args:
        stamp: Stamp of the folder.
        read_at_ns: A moment before the stamp was read.
        device: Device of the location itself; folders on other devices were not checked.
    """
    changed_at_ns = max(stamp.mtime_ns, stamp.ctime_ns)
    return stamp.device == device and changed_at_ns + _MARGIN_NS < read_at_ns


def encode_folders(
    location: str, stamps: Mapping[str, Stamp | None], file_count: int
) -> bytes | None:
    """Return the state of folders to keep between listings; None if a name is not UTF-8.

    Args:
        location: Absolute path of the location.
        stamps: Stamps of all folders, including the location itself; None if not trusted.
        file_count: Number of files in them.
    """
    times = list(stamps.values())
    try:
        columns = [pa.array(list(stamps), pa.string())]
    except UnicodeEncodeError:
        return None
    columns += [
        pa.array([None if stamp is None else stamp[at] for stamp in times], field.type)
        for at, field in enumerate(list(_STATE_SCHEMA)[1:])
    ]
    schema = _STATE_SCHEMA.with_metadata(_metadata(location, file_count))
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, schema, options=options) as stream:
        stream.write_table(pa.table(columns, schema=schema))
    body = bytes(sink.getvalue())
    return xxhash.xxh3_128_digest(body) + body


def decode_folders(state: bytes, location: str, file_count: int) -> KnownFolders | None:
    """Return the folders of an encoded state; None if it is damaged or for another listing."""
    digest, body = state[:_DIGEST_BYTES], state[_DIGEST_BYTES:]
    if digest != xxhash.xxh3_128_digest(body):
        return None
    with pa.ipc.open_stream(body) as stream:
        if stream.schema.metadata != _metadata(location, file_count):
            return None
        table = stream.read_all()
    paths = table["path"].to_pylist()
    numbers = zip(*(table[name].to_pylist() for name in Stamp._fields), strict=True)
    stamps = {
        path: Stamp(*stamp)
        for path, stamp in zip(paths, numbers, strict=True)
        if stamp[0] is not None
    }
    children: dict[str, list[str]] = {}
    for path in paths:
        if path:
            children.setdefault(path.rpartition("/")[0], []).append(path)
    return KnownFolders(stamps, children)


def _metadata(location: str, file_count: int) -> dict[bytes, bytes]:
    return {
        b"version": _VERSION,
        b"location": os.fsencode(location),
        b"files": str(file_count).encode(),
    }
