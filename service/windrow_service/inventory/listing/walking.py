"""List the files under a table's location, as columns."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windrow_core.files.errors import LocationError
from windrow_core.files.listing import (
    FolderEntries,
    ScanFolder,
    file_table,
)
from windrow_core.files.places import place_of
from windrow_core.files.rows import LISTING_SCHEMA
from windrow_core.files.table_paths import absolute_path, real_path
from windrow_service.inventory.listing.folders import (
    KnownFolders,
    Stamp,
    can_be_trusted,
    read_stamp,
)
from windrow_service.inventory.progress import ProgressMeter
from windrow_service.planner.splits import Hashes, Ints

# Listing waits for the disk if it is cold or remote; if everything is in memory, more threads
# neither help nor harm (20,000 folders: 0.27 s with 1, 4 or 16, as with pyarrow.fs).
_LISTING_THREADS = 8
_FOLDERS_PER_BATCH = 64

# What shows that a file may have been replaced by one of equal path, size and time: see
# `inventory.listing.relisting`. Both are null for files that were not looked at, or are remote.
CHANGE_FIELDS = (pa.field("stamp", pa.uint64()), pa.field("changed_ns", pa.int64()))
# Odd, from the golden ratio.
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
# The stamp of files on file systems that may invent inode numbers.
SAME = 1


def stamps_of(inodes: Hashes, changed_ns: Ints) -> Hashes:
    """Return the stamps of files; see `inventory.listing.relisting`.

    Args:
        inodes: Their inode numbers.
        changed_ns: When each last changed in any way, in nanoseconds since 1970.
    """
    stamps: Hashes = np.maximum(inodes * _MULTIPLIER ^ changed_ns.view(np.uint64), np.uint64(SAME))
    return stamps


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """The files of a table.

    Attributes:
        files: `LISTING_SCHEMA` and `CHANGE_FIELDS`, sorted by the bytes of the path; without the
            direct files of unchanged folders.
        folder_count: Number of listed folders, including the location.
        unchanged: Folders that were not listed, because they have not changed.
        stamps: Stamps of all folders that can be trusted; None if no folder can, or none need be.
        began_ns: A moment before any folder was listed.
    """

    files: pa.Table
    folder_count: int
    began_ns: int
    unchanged: Sequence[str] = ()
    stamps: Mapping[str, Stamp | None] | None = None


def without_links(scan: ScanFolder) -> ScanFolder:
    """Return a scan that refuses folders that are reached through a symbolic link.

    Otherwise, a listing of canonical paths would follow a link that has replaced a folder.
    """

    def scanned(location: str, folder: str, entries: FolderEntries) -> None:
        absolute = absolute_path(location, folder)
        scan(location, folder, entries)
        # Checked after the scan, so that a link put there before the scan is noticed.
        if real_path(absolute) != absolute:
            raise LocationError(
                absolute,
                "is reached through a symbolic link now, which is not followed; put the folder "
                "itself there, or give the catalog its real path",
            )

    return scanned


def list_with(
    location: str,
    meter: ProgressMeter,
    scan: ScanFolder,
    known_folders: KnownFolders | None = None,
    clock_ns: Callable[[], int] = time.time_ns,
    folders: Sequence[str] = ("",),
    *,
    stamps_folders: bool = False,
) -> Listing:
    """List every file under `location` that is not hidden, folders in parallel.

    A folder or file that vanishes meanwhile counts as gone. Symbolic links are followed to
    files that are themselves under the location, and refused otherwise.

    Args:
        location: Absolute path of a folder, or a URI.
        meter: Gets the progress, and may be cancelled.
        scan: Reads one folder.
        known_folders: Earlier state of folders; unchanged ones are not listed again.
        clock_ns: Returns the current time, which folders' times are compared with.
        folders: Where to begin, as paths in inventories; by default at the location.
        stamps_folders: Whether the stamps of folders are wanted.

    Raises:
        LocationError: The location does not exist, is not a folder, or contains something that
            cannot be read; the error names the folder.
        InventoryCancelledError: The meter was cancelled.
    """
    meter.enter(phase="listing")
    began_ns = clock_ns()
    place = place_of(location)
    known_folders = known_folders or KnownFolders()
    lister = _Lister(location, scan, known_folders, clock_ns, stamps_folders=stamps_folders)
    batches: list[_Batch] = []
    per_batch = 1 if place.request_s else _FOLDERS_PER_BATCH
    with ThreadPoolExecutor(
        max(_LISTING_THREADS, place.listings), thread_name_prefix="windrow-listing"
    ) as threads:
        pending = {
            threads.submit(lister.look, folders[start : start + per_batch])
            for start in range(0, len(folders), per_batch)
        }
        try:
            while pending:
                done, pending = wait(pending, return_when=FIRST_COMPLETED)
                subfolders: list[str] = []
                for future in done:
                    batch = future.result()
                    batches.append(batch)
                    subfolders += batch.folders
                    meter.add(
                        folders_listed=batch.listed_count,
                        folders_unchanged=len(batch.unchanged),
                        files_found=batch.files.num_rows,
                    )
                pending |= {
                    threads.submit(lister.look, subfolders[start : start + per_batch])
                    for start in range(0, len(subfolders), per_batch)
                }
        finally:
            for future in pending:
                future.cancel()
    meter.report()
    nothing = pa.schema([*LISTING_SCHEMA, *CHANGE_FIELDS]).empty_table()
    files = pa.concat_tables([nothing, *(batch.files for batch in batches)])
    return Listing(
        files=files.sort_by("path"),
        folder_count=sum(batch.listed_count for batch in batches),
        began_ns=began_ns,
        unchanged=[folder for batch in batches for folder in batch.unchanged],
        stamps=_joined(batch.stamps for batch in batches) if lister.stamps_folders else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Batch:
    """The contents of a few folders, and which of them have not changed."""

    files: pa.Table
    folders: list[str]
    unchanged: list[str]
    stamps: Mapping[str, Stamp | None]
    listed_count: int


class _Lister:
    """Lists folders, except those that have not changed.

    Attributes:
        stamps_folders: Whether folders have stamps.
    """

    def __init__(
        self,
        location: str,
        scan: ScanFolder,
        known_folders: KnownFolders,
        clock_ns: Callable[[], int],
        *,
        stamps_folders: bool,
    ) -> None:
        self._location = location
        self._clock_ns = clock_ns
        self._scan = scan
        self._known = known_folders
        # Device of the location; None if the times of its file system cannot be trusted.
        self._device: int | None = None
        if place_of(location).keeps_times(location):
            with contextlib.suppress(OSError):
                self._device = read_stamp(location, "").device
        self.stamps_folders = stamps_folders and self._device is not None

    def look(self, folders: Sequence[str]) -> _Batch:
        entries = FolderEntries()
        same: list[str] = []
        stamps: dict[str, Stamp | None] = {}
        for folder in folders:
            stamp = self._stamp_of(folder)
            if stamp is not None and self._known.stamps.get(folder) == stamp:
                entries.folders += self._known.children.get(folder, ())
                same.append(folder)
            else:
                entries.hold_links = False
                self._scan(self._location, folder, entries)
                # The target of a link may change without the folder that has the link.
                stamp = None if entries.hold_links else stamp
            stamps[folder] = stamp
        files = file_table(self._location, entries)
        for field, values in zip(CHANGE_FIELDS, self._changes(entries), strict=True):
            files = files.append_column(field, values)
        return _Batch(
            files=files,
            folders=entries.folders,
            unchanged=same,
            stamps=stamps,
            listed_count=len(folders) - len(same),
        )

    def _changes(self, entries: FolderEntries) -> list[pa.Array]:
        """Return the columns `CHANGE_FIELDS`."""
        if not entries.inodes:
            return [pa.nulls(len(entries.paths), field.type) for field in CHANGE_FIELDS]
        if self._device is None:
            # Such file systems may also invent inode numbers, new ones each time.
            stamps = np.full(len(entries.paths), SAME, np.uint64)
            return [pa.array(stamps), pa.array(entries.mtimes_ns, pa.int64())]
        changed_ns = np.array(entries.ctimes_ns, np.int64)
        stamps = stamps_of(np.array(entries.inodes, np.uint64), changed_ns)
        return [pa.array(stamps), pa.array(changed_ns)]

    def _stamp_of(self, folder: str) -> Stamp | None:
        """Return a folder's stamp from before it is listed, if it can be trusted."""
        if not self.stamps_folders or self._device is None:
            return None
        now_ns = self._clock_ns()
        try:
            stamp = read_stamp(self._location, folder)
        except OSError:
            # Listing it will raise the proper error.
            return None
        return stamp if can_be_trusted(stamp, now_ns, self._device) else None


def _joined(parts: Iterable[Mapping[str, Stamp | None]]) -> dict[str, Stamp | None]:
    union: dict[str, Stamp | None] = {}
    for part in parts:
        union |= part
    return union
