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
        store=pack_store(adapters), snapshots=adapters.snapshots, runner=adapters.runner
    )


def open_packing(adapters: Adapters, manifests: ManifestReader, packs: TablePacks) -> PlanPacking:
    """Return what finds the files that are worth a pack."""
    return PlanPacking(
        snapshots=adapters.snapshots,
        manifests=manifests,
        packs=packs,
        folder=_place(adapters),
        clock=adapters.clock,
        filter_limits=adapters.filter_limits,
    )


def open_packs(adapters: Adapters, manifests: ManifestReader, plan: PlanPacking) -> PackServices:
    """Return the services of packs; withdraw and remove them in the background."""
    settings, place = adapters.settings, _place(adapters)
    # Separate from plans, which are quick.
    store, runner = pack_store(adapters), adapters.threads("packs")
    if place is not None:
        keep = KeepPacks(
            snapshots=adapters.snapshots,
            manifests=manifests,
            packs=store,
            usable=plan.packs,
            folder=place,
            runner=runner,
            clock=adapters.clock,
            erase_within=settings.packs.erase_within,
        )
        adapters.repeat("look after packs", keep, _KEEP_EVERY_S)
    return PackServices(
        tables=adapters.tables,
        packs=store,
        plan=plan,
        publish=PublishPack(
            snapshots=adapters.snapshots,
            manifests=manifests,
            packs=store,
            folder=place,
            runner=runner,
            max_decoded_bytes=settings.limits.max_publish_decoded_bytes,
        ),
    )


def _place(adapters: Adapters) -> DiskOrStoreFolder | None:
    folder = adapters.settings.packs_folder
    return None if folder is None else DiskOrStoreFolder(folder)


def pack_store(adapters: Adapters) -> SqlPackStore:
    """Return the store of packs."""
    return adapters.stored(SqlPackStore(adapters.database, adapters.clock), "packs")
