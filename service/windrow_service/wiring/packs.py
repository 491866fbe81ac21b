"""Build the services of packs."""

from __future__ import annotations

from windrow_service.api.services import PackServices
from windrow_service.pack_folder import DiskOrStoreFolder
from windrow_service.store.packs import SqlPackStore
from windrow_service.usecases.packs.coverage import TablePacks
from windrow_service.usecases.packs.keep import KeepPacks
from windrow_service.usecases.packs.plan import PlanPacking
from windrow_service.usecases.packs.publish import PublishPack
from windrow_service.usecases.snapshots.scans import ManifestReader
from windrow_service.wiring.adapters import Adapters

_KEEP_EVERY_S = 10.0


def open_table_packs(adapters: Adapters) -> TablePacks:
    """Return what finds packs of tables, for plans and engines."""
    return TablePacks(
        store=_pack_store(adapters), snapshots=adapters.snapshots, runner=adapters.runner
    )


def open_packs(adapters: Adapters, manifests: ManifestReader, packs: TablePacks) -> PackServices:
    """Return the services of packs; withdraw and remove them in the background."""
    settings, folder = adapters.settings, adapters.settings.packs_folder
    place = None if folder is None else DiskOrStoreFolder(folder)
    # Separate from plans, which are quick.
    store, runner = _pack_store(adapters), adapters.threads("packs")
    if place is not None:
        keep = KeepPacks(
            snapshots=adapters.snapshots,
            manifests=manifests,
            packs=store,
            usable=packs,
            folder=place,
            runner=runner,
            clock=adapters.clock,
            erase_within=settings.packs.erase_within,
        )
        adapters.repeat("look after packs", keep, _KEEP_EVERY_S)
    return PackServices(
        tables=adapters.tables,
        packs=store,
        plan=PlanPacking(
            snapshots=adapters.snapshots, manifests=manifests, packs=packs, folder=place
        ),
        publish=PublishPack(
            snapshots=adapters.snapshots,
            manifests=manifests,
            packs=store,
            folder=place,
            runner=runner,
            max_decoded_bytes=settings.limits.max_publish_decoded_bytes,
        ),
    )


def _pack_store(adapters: Adapters) -> SqlPackStore:
    return adapters.stored(SqlPackStore(adapters.database, adapters.clock), "packs")
