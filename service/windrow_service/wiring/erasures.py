"""Build the services of erasures."""

from __future__ import annotations

from windrow_service.api.services import ErasureServices
from windrow_service.filters.limits import FilterLimits
from windrow_service.pack_folder import DiskOrStoreFolder
from windrow_service.store.erasures import SqlErasureStore
from windrow_service.store.expiry import SqlSnapshotKeeping
from windrow_service.store.packs import SqlPackStore
from windrow_service.usecases.engines.describe import DescribeTable
from windrow_service.usecases.erasures.finish import FinishErasure
from windrow_service.usecases.erasures.plan import PlanErasure
from windrow_service.usecases.erasures.remains import Remains
from windrow_service.usecases.packs.coverage import TablePacks
from windrow_service.usecases.snapshots.scans import ManifestReader
from windrow_service.wiring.adapters import Adapters


async def open_erasures(
    adapters: Adapters,
    manifests: ManifestReader,
    packs: TablePacks,
    describe: DescribeTable | None,
) -> ErasureServices:
    """Return the services of erasures."""
    limits, folder, database = (
        adapters.settings.limits,
        adapters.settings.packs_folder,
        adapters.database,
    )
    # Separate from plans, which are quick.
    runner = adapters.threads("erasures")
    return ErasureServices(
        plan=PlanErasure(
            snapshots=adapters.snapshots,
            manifests=manifests,
            runner=runner,
            filter_limits=FilterLimits(
                max_nodes=limits.max_filter_nodes, max_depth=limits.max_filter_depth
            ),
            max_decoded_bytes=limits.max_publish_decoded_bytes,
        ),
        finish=FinishErasure(
            tables=adapters.tables,
            store=adapters.stored(SqlErasureStore(database, adapters.clock), "erasures"),
            remains=Remains(
                snapshots=adapters.snapshots,
                keeping=adapters.stored(SqlSnapshotKeeping(database), "snapshots"),
                manifests=manifests,
                packs=adapters.stored(SqlPackStore(database, adapters.clock), "packs"),
                usable=packs,
                folder=None if folder is None else DiskOrStoreFolder(folder),
                holdings=adapters.cache,
                heartbeats=adapters.cache,
                runner=runner,
                clock=adapters.clock,
            ),
            describe=describe,
            clock=adapters.clock,
            installation=await database.installation(),
            key=await database.signing_key(),
        ),
    )
