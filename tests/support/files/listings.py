"""Listings of tables on the local disk, as a refresh takes them."""

from __future__ import annotations

import threading
from dataclasses import replace

from windrow_core.files.listing import ScanFolder, scan_local_folder
from windrow_core.files.rows import LISTING_SCHEMA
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
