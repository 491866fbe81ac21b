"""Build the services of packs."""

from __future__ import annotations

from datetime import timedelta

from windrow_service.api.services import PackServices
from windrow_service.pack_folder import DiskOrStoreFolder
from windrow_service.store.packs import SqlPackStore
from windrow_service.usecases.packs.coverage import TablePacks
from windrow_service.usecases.packs.keep import KeepPacks
from windrow_service.usecases.packs.plan import PlanPacking
from windrow_service.usecases.packs.publish import PublishPack
from windrow_service.usecases.packs.runs import RenewRun
from windrow_service.usecases.snapshots.scans import ManifestReader
from windrow_service.wiring.adapters import Adapters

_KEEP_EVERY_S = 10.0
# Packers need some time between two signs of life.
_SHORTEST_LEASE = timedelta(minutes=1)


def open_table_packs(adapters: Adapters) -> TablePacks:
    """Return what finds packs of tables, for plans and engines."""
    return TablePacks(
        store=adapters.stored(SqlPackStore(adapters.database, adapters.clock), "packs"),
        snapshots=adapters.snapshots,
        runner=adapters.runner,
    )


def open_packing(adapters: Adapters, manifests: ManifestReader, packs: TablePacks) -> PlanPacking:
    """Return what finds the files that are worth a pack."""
    folder = adapters.settings.packs_folder
    return PlanPacking(
        snapshots=adapters.snapshots,
        manifests=manifests,
        packs=packs,
        folder=None if folder is None else DiskOrStoreFolder(folder),
        clock=adapters.clock,
        filter_limits=adapters.filter_limits,
    )


def open_packs(adapters: Adapters, manifests: ManifestReader, plan: PlanPacking) -> PackServices:
    """Return the services of packs; withdraw and remove them in the background."""
    # Separate from plans, which are quick.
    store, place, runner = plan.packs.store, plan.folder, adapters.threads("packs")
    settings = adapters.settings
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
        renew_run=RenewRun(
            tables=adapters.tables,
            packs=store,
            folder=place,
            clock=adapters.clock,
            longest=max(settings.packs.erase_within / 2, _SHORTEST_LEASE),
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
