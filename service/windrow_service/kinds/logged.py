"""What inventories from logs have in common."""

from __future__ import annotations

from windrow_service.inventory.manifests.encoding import follows_rules
from windrow_service.usecases.snapshots.ports import InventoryRequest


def must_read_all(request: InventoryRequest) -> bool:
    """Return whether nothing of the previous inventory may be carried over.

    What is carried over from a log was read under the rules of that time. Of other formats, only the
    files concerned are read again.
    """
    return request.full or not all(map(follows_rules, request.previous_bodies))
