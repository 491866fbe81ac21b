"""List a location again, and tell which files may be others under the same path, size and time."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from windrow_core.files.arrays import flat
from windrow_core.files.chunks import FooterGroup
from windrow_core.files.listing import (
    ScanFolder,
    in_folders,
    without_empty,
)
from windrow_core.files.remote import scan_of
from windrow_core.files.rows import LISTING_SCHEMA
from windrow_core.files.sinks import keep_committed, read_sink_log
from windrow_service.inventory.listing.folders import decode_folders, encode_folders
from windrow_service.inventory.listing.walking import CHANGE_FIELDS, Listing, list_with
from windrow_service.inventory.progress import ProgressMeter
from windrow_service.planner.caching.file_keys import file_keys
from windrow_service.planner.pruning.bounds import Bools
from windrow_service.planner.splits import Hashes

# A file's stamp is its inode number and the time of its last change of any kind, which nobody can
# set back: it distinguishes the file from a replacement with equal path, size and time. Both parts
# may also change while the content stays (another link to the file, another owner, a restored
# disk): a new stamp means that a file must be read again, not that its content differs.
#
# Two changes within one tick of a file system's clock cannot be told apart. So a file that changed
# shortly before it was listed gets this stamp, which no file has when it is listed again.
_UNSURE = np.uint64(0)
# The coarsest clock of a file system in use (FAT) ticks every 2 s.
_MARGIN_NS = 2 * 10**9
# The state of folders once a file was rewritten in place: their times are not trusted any more.
REWRITTEN = b"rewritten"
_DIGEST_BYTES = 16
_LENGTH = struct.Struct("<Q")
_WORD = np.dtype("<u8")


@dataclass(frozen=True, slots=True, eq=False)
class FileStamps:
    """The stamps of n files.

    Attributes:
        keys: Hashes of path, size and time of each file, ascending.
        stamps: The stamp of each file.
    """

    keys: Hashes
    stamps: Hashes

    def of(self, keys: Hashes) -> pa.Array:
        """Return the stamps of the files with the given keys (uint64); null if unknown."""
        if not len(self.keys):
            return pa.nulls(len(keys), pa.uint64())
        at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return pa.array(self.stamps[at], mask=self.keys[at] != keys)


_NONE = FileStamps(np.empty(0, np.uint64), np.empty(0, np.uint64))


def compare_stamps(
    files: pa.Table, earlier: FileStamps, began_ns: int, known_at_ns: int | None = None
) -> tuple[Bools, FileStamps]:
    """Return which of n files may be others than before, and return the current stamps.

    Args:
        files: `LISTING_SCHEMA` and `CHANGE_FIELDS`.
        earlier: Earlier stamps.
        began_ns: A moment before the files were listed.
        known_at_ns: A moment at which files without an earlier stamp were known, since somebody had
            published them; None if they count as the same.
    """
    keys = file_keys(files)
    now, changed_ns, before = flat(files["stamp"]), flat(files["changed_ns"]), earlier.of(keys)
    is_other = pc.not_equal(now, before)
    if known_at_ns is not None:
        is_other = pc.coalesce(is_other, pc.greater(changed_ns, known_at_ns))
    differs = pc.fill_null(is_other, False)
    is_recent = pc.greater_equal(changed_ns, began_ns - _MARGIN_NS)
    stamps = pc.coalesce(pc.if_else(is_recent, _UNSURE, now), before)
    valid = stamps.is_valid().to_numpy(zero_copy_only=False)
    keys, known_stamps = keys[valid], stamps.drop_null().to_numpy()
    order = np.argsort(keys)
    return (
        differs.to_numpy(zero_copy_only=False),
        FileStamps(keys=keys[order], stamps=known_stamps[order]),
    )


def join_state(folders: bytes, files: FileStamps) -> bytes:
    """Return the state to keep between listings: the state of folders, and the stamps of files."""
    numbers = [column.astype(_WORD).tobytes() for column in (files.keys, files.stamps)]
    body = b"".join([_LENGTH.pack(len(folders)), folders, *numbers])
    return xxhash.xxh3_128_digest(body) + body


def split_state(state: bytes | None) -> tuple[bytes, FileStamps]:
    """Return the arguments of `join_state`; empty if the state is damaged or of another version."""
    if state is None or state[:_DIGEST_BYTES] != xxhash.xxh3_128_digest(state[_DIGEST_BYTES:]):
        return b"", _NONE
    start = _DIGEST_BYTES + _LENGTH.size
    (length,) = _LENGTH.unpack_from(state, _DIGEST_BYTES)
    if length > len(state) - start or (len(state) - start - length) % (2 * _WORD.itemsize):
        return b"", _NONE
    keys, stamps = np.frombuffer(state, _WORD, offset=start + length).reshape(2, -1)
    return state[start : start + length], FileStamps(keys=keys, stamps=stamps)


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownListing:
    """The result of an earlier listing.

    Attributes:
        files: Columns of `LISTING_SCHEMA` and perhaps others, sorted by path.
        state: `Relisting.state` of an earlier listing; None if there was none.
        full: Whether to list every folder, also if folders' times are trusted. If not, the state
            must be from the listing that found exactly these files.
        known_at_ns: When these files were known to be those of the table; None if unknown.
    """

    files: pa.Table
    state: bytes | None
    full: bool
    known_at_ns: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Relisting:
    """The files of a table.

    Attributes:
        files: `LISTING_SCHEMA`, sorted by the bytes of the path; none of them empty.
        empty: Files of 0 bytes, which Spark ignores. Their folders count.
        replaced: For each file, whether it may have been replaced although path, size and time
            are the same.
        folder_count: Number of listed folders, including the location.
        state: State of folders and files for the next listing; None if it would be of no use.
        partition_paths: Paths with the folders of partitions: of the files first, in their order.
        delete_files: `DELETE_FILES` of a transactional table whose rows can be deleted; else None.
        delete_totals: Columns `delete_count` and `delete_bytes` of the files of such a table.
    """

    files: pa.Table
    empty: pa.Table
    replaced: Bools
    folder_count: int
    state: bytes | None
    partition_paths: pa.ChunkedArray
    delete_files: pa.Table | None = None
    delete_totals: Mapping[str, pa.Array] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Folders:
    """How the folders of a table are read: all of their files.

    Attributes:
        names_rows: Whether its rows can be deleted one by one.
    """

    names_rows: bool = False

    def list_again(self, location: str, *args: Any, **options: Any) -> Relisting:
        """Return the files that are read; see the function `list_again`."""
        return list_again(location, *args, **options)

    def check(self, groups: Sequence[FooterGroup]) -> None:
        """Refuse files that such a table cannot have, given footers of some."""


PLAIN_FOLDERS = Folders()


def list_again(
    location: str,
    meter: ProgressMeter,
    earlier: KnownListing | None,
    scan: ScanFolder | None = None,
    clock_ns: Callable[[], int] = time.time_ns,
    folders: Sequence[str] | None = None,
    *,
    trusts_folders: bool = False,
) -> Relisting:
    """List a location again.

    Args:
        location: Absolute path of a folder, or a URI.
        meter: Gets the progress.
        earlier: The earlier listing.
        scan: Reads one folder; by default, as the location requires.
        clock_ns: Returns the current time, which folders' times are compared with.
        folders: The only folders to list, as paths in inventories; None for all.
        trusts_folders: Whether folders whose times have not changed are not listed again: files in
            them that were rewritten in place are not found then.
    """
    before = None
    state, file_stamps = split_state(earlier.state if earlier is not None else None)
    was_rewritten = state == REWRITTEN
    trusts_folders = trusts_folders and not was_rewritten
    if earlier is not None and not earlier.full and trusts_folders:
        before = decode_folders(state, location, len(earlier.files))
    scan = scan or scan_of(location)
    # If a catalog lists the partitions, Spark does not look at the location itself.
    log = read_sink_log(location) if folders is None else None
    begin = ("",) if folders is None else folders
    listing = list_with(
        location, meter, scan, before, clock_ns, begin, stamps_folders=trusts_folders
    )
    files = listing.files
    if earlier is not None and listing.unchanged:
        files = _with_unchanged(listing, earlier.files)
    not_in_log = files.schema.empty_table()
    if log is not None:
        files, not_in_log = keep_committed(location, files, log)
    files, empty = without_empty(files)
    meter.enter(files_found=len(files), files_empty=len(empty), files_uncommitted=len(not_in_log))
    known_at_ns = earlier.known_at_ns if earlier is not None else None
    is_other_file, file_stamps = compare_stamps(files, file_stamps, listing.began_ns, known_at_ns)
    stamps, state = listing.stamps, REWRITTEN if was_rewritten else b""
    if stamps is not None:
        # The next listing will not know the ignored files, and must list their folders again.
        again = _folders_of(pa.concat_tables([empty, not_in_log]))
        stamps = {**stamps, **dict.fromkeys(again.unique().to_pylist())}
        state = encode_folders(location, stamps, len(files)) or b""
    files = files.select(LISTING_SCHEMA.names).combine_chunks()
    paths = [*files["path"].chunks, *in_folders(empty)["path"].chunks]
    return Relisting(
        files=files,
        empty=empty.select(LISTING_SCHEMA.names),
        replaced=is_other_file,
        folder_count=listing.folder_count,
        state=join_state(state, file_stamps) if state or len(file_stamps.keys) else None,
        partition_paths=pa.chunked_array(paths, pa.string()),
    )


def _with_unchanged(listing: Listing, before: pa.Table) -> pa.Table:
    names = LISTING_SCHEMA.names
    before = before.select(names)
    for one in CHANGE_FIELDS:
        before = before.append_column(one, pa.nulls(len(before), one.type))
    folders = pa.array(listing.unchanged, pa.string())
    files = before.filter(pc.is_in(_folders_of(before), folders))
    if not len(listing.files):
        return files
    return pa.concat_tables([files, listing.files]).sort_by("path")


def _folders_of(files: pa.Table) -> pa.ChunkedArray:
    return pc.replace_substring_regex(files["path"], "/?[^/]*$", "")


def with_rewritten(state: bytes | None) -> bytes:
    """Return a state that tells further listings not to trust the times of folders."""
    return join_state(REWRITTEN, split_state(state)[1])
