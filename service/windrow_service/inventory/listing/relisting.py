"""Listing a location again: only the folders that changed, and the files known of the others."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from windrow.files.entries import (
    LISTING_SCHEMA,
    ScanFolder,
    scan_local_folder,
    without_empty,
)
from windrow.files.remote import is_remote, scan_remote_folder
from windrow.files.sinks import keep_committed, read_sink_log
from windrow_service.inventory.listing.file_stamps import compare_stamps, join_state, split_state
from windrow_service.inventory.listing.folders import decode_folders, encode_folders
from windrow_service.inventory.listing.listing import Listing, list_with
from windrow_service.inventory.progress import ProgressMeter
from windrow_service.planner.pruning.bounds import Bools


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownListing:
    """What an earlier listing found.

    Attributes:
        files: Columns of `LISTING_SCHEMA` and perhaps others, sorted by path.
        state: `Relisting.state` of an earlier listing; None if there was none.
        full: Whether to list every folder; the state must else be that of the listing that found
            just these files.
    """

    files: pa.Table
    state: bytes | None
    full: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Relisting:
    """The files of a table.

    Attributes:
        files: `LISTING_SCHEMA`, sorted by the bytes of the path; none of them empty.
        empty: Files of 0 bytes, which Spark passes over. Their folders count.
        replaced: Of each file, whether it may be another than before although path, size and
            time are the same.
        folder_count: How many folders were listed, the location included.
        state: What folders and files were, for the next time; None where that tells nothing.
    """

    files: pa.Table
    empty: pa.Table
    replaced: Bools
    folder_count: int
    state: bytes | None


def list_again(
    location: str,
    meter: ProgressMeter,
    known: KnownListing | None,
    scan: ScanFolder | None = None,
    clock_ns: Callable[[], int] = time.time_ns,
) -> Relisting:
    """List a location, but not the folders that hold what they held.

    Args:
        location: Absolute path of a folder, or a URI.
        meter: Told about the progress.
        known: What was found before.
        scan: How one folder is read; as the location asks for by default.
        clock_ns: Tells the time, which folders' times are compared with.

    Raises:
        LocationError: Something cannot be listed.
        InventoryCancelledError: The caller asked to stop.
    """
    folders = None
    state, file_stamps = split_state(known.state if known is not None else None)
    if known is not None and not known.full:
        folders = decode_folders(state, location, len(known.files))
    scan = scan or (scan_remote_folder if is_remote(location) else scan_local_folder)
    committed = read_sink_log(location)
    listing = list_with(location, meter, scan, folders, clock_ns)
    files = listing.files
    if known is not None and listing.unchanged:
        files = _with_unchanged(listing, known.files)
    uncommitted = files.schema.empty_table()
    if committed is not None:
        files, uncommitted = keep_committed(location, files, committed)
    files, empty = without_empty(files)
    meter.enter(files_found=len(files), files_empty=len(empty), files_uncommitted=len(uncommitted))
    replaced, file_stamps = compare_stamps(files, file_stamps)
    stamps, state = listing.stamps, b""
    if stamps is not None:
        # What was passed over there is not known the next time.
        again = _folders_of(pa.concat_tables([empty, uncommitted]))
        stamps = {**stamps, **dict.fromkeys(again.unique().to_pylist())}
        state = encode_folders(location, stamps, len(files)) or b""
    return Relisting(
        files=files.select(LISTING_SCHEMA.names).combine_chunks(),
        empty=empty.select(LISTING_SCHEMA.names),
        replaced=replaced,
        folder_count=listing.folder_count,
        state=join_state(state, file_stamps) if state or len(file_stamps.keys) else None,
    )


def _with_unchanged(listing: Listing, known: pa.Table) -> pa.Table:
    names = LISTING_SCHEMA.names
    known = known.select(names).append_column("stamp", pa.nulls(len(known), pa.uint64()))
    unchanged = pa.array(listing.unchanged, pa.string())
    stayed = known.filter(pc.is_in(_folders_of(known), unchanged))
    if not len(listing.files):
        return stayed
    return pa.concat_tables([stayed, listing.files]).sort_by("path")


def _folders_of(files: pa.Table) -> pa.ChunkedArray:
    return pc.replace_substring_regex(files["path"], "/?[^/]*$", "")
