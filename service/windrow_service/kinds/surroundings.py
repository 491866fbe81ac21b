"""Where a table lies, and what else may be read there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from windrow_core.files.limits import ReadLimits
from windrow_service.inventory.listing.partition_lists import ListedPartitions
from windrow_service.usecases.snapshots.ports import InventoryRequest, NextSnapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Where a table lies, and what else may be read there.

    Attributes:
        location: Its canonical location.
        topmost: The topmost folder above it that may be inspected.
        roots: Canonical folders and URIs that files may be in.
        limits: What is read of one file.
        partition_list: The only partitions of the table; None if its folders are its partitions.
    """

    location: str
    topmost: str
    roots: tuple[str, ...]
    limits: ReadLimits
    partition_list: ListedPartitions | None


TakeInventory: TypeAlias = Callable[[InventoryRequest, Surroundings], NextSnapshot]
