"""What the first inventory of a table is asked for."""

from __future__ import annotations

import threading

from windrow_core.models import TableDefinition
from windrow_service.usecases.snapshots.ports import InventoryRequest


def first_request(definition: TableDefinition) -> InventoryRequest:
    """Return the request for the inventory of a table that has none."""
    return InventoryRequest(
        definition=definition,
        previous=None,
        previous_bodies=(),
        listing=None,
        full=True,
        on_progress=lambda _: None,
        cancelled=threading.Event(),
    )
