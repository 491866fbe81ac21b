"""How the inventory of a table is taken, given its kind."""

from __future__ import annotations

from windrow_core.kinds.delta import DELTA
from windrow_core.kinds.iceberg import ICEBERG
from windrow_core.kinds.kind import TableKind
from windrow_service.kinds.delta import take_delta
from windrow_service.kinds.folders import take_folders
from windrow_service.kinds.iceberg import take_iceberg
from windrow_service.kinds.surroundings import TakeInventory

_OWN = {DELTA.noun: take_delta, ICEBERG.noun: take_iceberg}


def inventories_of(kind: TableKind) -> TakeInventory:
    """Return what takes the inventories of tables of a kind."""
    return _OWN.get(kind.noun, take_folders)
