"""Which files lie under a table's location, as columns."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace

import pyarrow as pa

from windrow.files.entries import (
    LISTING_SCHEMA,
    FolderEntries,
    ScanFolder,
    file_table,
    scan_local_folder,
)
from windrow.files.remote import is_remote
from windrow_service.inventory.listing.folders import (
    KnownFolders,
    Stamp,
    can_be_trusted,
    keeps_folder_times,
    read_stamp,
)
from windrow_service.inventory.progress import OnProgress, ProgressMeter

# Listing is bound by waiting where the disk is cold or remote; where all is in memory, more
# threads neither help nor harm (20,000 folders: 0.27 s with 1, 4 or 16, as with pyarrow.fs).
_LISTING_THREADS = 8
_FOLDERS_PER_BATCH = 64
# There, to list a folder is to wait for answers.
_REMOTE_LISTING_THREADS = 16

_STAMP = pa.field("stamp", pa.uint64())


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """The files of a table.

    Attributes:
        files: `LISTING_SCHEMA` and `stamp` (see `inventory.file_stamps`), sorted by the bytes of
            the path; without those right in the unchanged folders.
        folder_count: How many folders were listed, the location included.
        unchanged: Folders that were not, as they hold what they held.
        stamps: Of every folder, where it can be trusted; None where no folder's can.
    """

    files: pa.Table
    folder_count: int
    unchanged: Sequence[str] = ()
    stamps: Mapping[str, Stamp | None] | None = None


def list_files(
    location: str,
    on_progress: OnProgress | None = None,
    *,
    cancelled: threading.Event | None = None,
    scan: ScanFolder | None = None,
) -> Listing:
    """List every file under `location` that is not hidden, folders in parallel.

    A folder or file that vanishes meanwhile counts as gone. Symbolic links are followed to
    files that lie under the location themselves, and refused otherwise.

    Args:
        location: Absolute path of a folder.
        on_progress: Told about the progress, at a bounded rate.
        cancelled: Set it to stop.
        scan: How one folder is read; the local disk by default.

    Raises:
        LocationError: The location does not exist, is not a folder, or holds something that
            cannot be read; it names the folder.
        InventoryCancelledError: `cancelled` was set.
    """
    meter = ProgressMeter(on_progress, cancelled)
    listing = list_with(location, meter, scan or scan_local_folder)
    return replace(listing, files=listing.files.select(LISTING_SCHEMA.names))


def list_with(
    location: str,
    meter: ProgressMeter,
    scan: ScanFolder,
    known: KnownFolders | None = None,
    clock_ns: Callable[[], int] = time.time_ns,
) -> Listing:
    """Do what `list_files` does, and report to a meter that the caller shares.

    Args:
        location: Absolute path of a folder, or a URI.
        meter: Told about the progress.
        scan: How one folder is read.
        known: Folders as they were; those that did not change are not listed again.
        clock_ns: Tells the time, which folders' times are compared with.
    """
    meter.enter(phase="listing")
    remote = is_remote(location)
    looker = _Looker(location, scan, known or KnownFolders(), clock_ns)
    batches: list[_Batch] = []
    per_batch = 1 if remote else _FOLDERS_PER_BATCH
    with ThreadPoolExecutor(
        _REMOTE_LISTING_THREADS if remote else _LISTING_THREADS,
        thread_name_prefix="windrow-listing",
    ) as threads:
        pending = {threads.submit(looker.look, [""])}
        try:
            while pending:
                done, pending = wait(pending, return_when=FIRST_COMPLETED)
                found: list[str] = []
                for future in done:
                    batch = future.result()
                    batches.append(batch)
                    found += batch.folders
                    meter.add(
                        folders_listed=batch.listed_count,
                        folders_unchanged=len(batch.unchanged),
                        files_found=batch.files.num_rows,
                    )
                pending |= {
                    threads.submit(looker.look, found[start : start + per_batch])
                    for start in range(0, len(found), per_batch)
                }
        finally:
            for future in pending:
                future.cancel()
    meter.report()
    nothing = LISTING_SCHEMA.append(_STAMP).empty_table()
    files = pa.concat_tables([nothing, *(batch.files for batch in batches)])
    return Listing(
        files=files.sort_by("path"),
        folder_count=sum(batch.listed_count for batch in batches),
        unchanged=[folder for batch in batches for folder in batch.unchanged],
        stamps=_joined(batch.stamps for batch in batches) if looker.device is not None else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Batch:
    """What a few folders hold, and which of them did not change."""

    files: pa.Table
    folders: list[str]
    unchanged: list[str]
    stamps: Mapping[str, Stamp | None]
    listed_count: int


class _Looker:
    """Lists folders, but those that did not change.

    Attributes:
        device: Where the location lies; None where folders' times tell nothing.
    """

    def __init__(
        self,
        location: str,
        scan: ScanFolder,
        known: KnownFolders,
        clock_ns: Callable[[], int],
    ) -> None:
        self._location = location
        self._clock_ns = clock_ns
        self._scan = scan
        self._known = known
        self.device: int | None = None
        if not is_remote(location) and keeps_folder_times(location):
            with contextlib.suppress(OSError):
                self.device = read_stamp(location, "").device

    def look(self, folders: Sequence[str]) -> _Batch:
        entries = FolderEntries()
        unchanged: list[str] = []
        stamps: dict[str, Stamp | None] = {}
        for folder in folders:
            stamp = self._stamp_of(folder)
            if stamp is not None and self._known.stamps.get(folder) == stamp:
                entries.folders += self._known.children.get(folder, ())
                unchanged.append(folder)
            else:
                entries.hold_links = False
                self._scan(self._location, folder, entries)
                # What a link leads to may change while the folder with the link does not.
                stamp = None if entries.hold_links else stamp
            stamps[folder] = stamp
        return _Batch(
            files=file_table(self._location, entries).append_column(_STAMP, self._stamps(entries)),
            folders=entries.folders,
            unchanged=unchanged,
            stamps=stamps,
            listed_count=len(folders) - len(unchanged),
        )

    def _stamps(self, entries: FolderEntries) -> pa.Array:
        # What makes up folders' times may make up inode numbers as well, others each time.
        if self.device is None or not entries.stamps:
            return pa.nulls(len(entries.paths), _STAMP.type)
        return pa.array(entries.stamps, _STAMP.type)

    def _stamp_of(self, folder: str) -> Stamp | None:
        """Return a folder's stamp as it is before it is listed, if it can be trusted."""
        if self.device is None:
            return None
        now_ns = self._clock_ns()
        try:
            stamp = read_stamp(self._location, folder)
        except OSError:
            # To list it says what is the matter.
            return None
        return stamp if can_be_trusted(stamp, now_ns, self.device) else None


def _joined(parts: Iterable[Mapping[str, Stamp | None]]) -> dict[str, Stamp | None]:
    joined: dict[str, Stamp | None] = {}
    for part in parts:
        joined |= part
    return joined
