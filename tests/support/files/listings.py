"""Listings of tables on the local disk, and their footers, as a refresh takes them."""

from __future__ import annotations

import threading
from concurrent.futures import Executor
from dataclasses import replace

import pyarrow as pa

from windrow_core.files.chunks import FooterGroup
from windrow_core.files.listing import ScanFolder, scan_local_folder
from windrow_core.files.rows import LISTING_SCHEMA
from windrow_service.inventory.footers.reading import read_with
from windrow_service.inventory.listing.walking import Listing, list_with
from windrow_service.inventory.progress import OnProgress, ProgressMeter


def list_files(
    location: str,
    on_progress: OnProgress | None = None,
    *,
    cancelled: threading.Event | None = None,
    scan: ScanFolder = scan_local_folder,
) -> Listing:
    """Return a listing without what shows that files have changed; see `list_with`."""
    listing = list_with(location, ProgressMeter(on_progress, cancelled), scan)
    return replace(listing, files=listing.files.select(LISTING_SCHEMA.names))


def read_footers(
    location: str,
    files: pa.Table,
    on_progress: OnProgress | None = None,
    *,
    executor: Executor | None = None,
) -> list[FooterGroup]:
    """Return the footers of listed Parquet files; see `read_with`."""
    return read_with(location, files, ProgressMeter(on_progress), executor)
