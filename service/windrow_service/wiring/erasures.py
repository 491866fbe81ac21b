"""Build the services of erasures."""

from __future__ import annotations

from windrow_service.api.services import ErasureServices
from windrow_service.store.erasures import SqlErasureStore
from windrow_service.store.expiry import SqlSnapshotKeeping
from windrow_service.usecases.engines.describe import DescribeTable
from windrow_service.usecases.erasures.finish import FinishErasure
from windrow_service.usecases.erasures.plan import PlanErasure
from windrow_service.usecases.erasures.remains import Remains
from windrow_service.usecases.packs.plan import PlanPacking
from windrow_service.usecases.snapshots.scans import ManifestReader
from windrow_service.wiring.adapters import Adapters


async def open_erasures(
    adapters: Adapters,
    manifests: ManifestReader,
    packing: PlanPacking,
    describe: DescribeTable | None,
) -> ErasureServices:
    """Return the services of erasures."""
    limits, database = adapters.settings.limits, adapters.database
    # Separate from plans, which are quick.
    runner = adapters.threads("erasures")
    return ErasureServices(
        plan=PlanErasure(
            snapshots=adapters.snapshots,
            manifests=manifests,
            runner=runner,
            filter_limits=adapters.filter_limits,
            max_decoded_bytes=limits.max_publish_decoded_bytes,
        ),
        finish=FinishErasure(
            tables=adapters.tables,
            store=adapters.stored(SqlErasureStore(database, adapters.clock), "erasures"),
            remains=Remains(
                snapshots=adapters.snapshots,
                keeping=adapters.stored(SqlSnapshotKeeping(database), "snapshots"),
                manifests=manifests,
                packs=packing.packs.store,
                usable=packing.packs,
                folder=packing.folder,
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
