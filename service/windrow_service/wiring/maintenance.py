"""Build the services of maintenance."""

from __future__ import annotations

from windrow_service.api.services import MaintenanceServices
from windrow_service.runs.maintenance import MaintenanceRounds
from windrow_service.store.plan_history import SqlPlanHistory
from windrow_service.store.policies import SqlPolicyStore
from windrow_service.store.receipts import SqlWorkStore
from windrow_service.usecases.maintenance.claims import ClaimWork
from windrow_service.usecases.maintenance.decide import Decide
from windrow_service.usecases.maintenance.packing import PackingFinder
from windrow_service.usecases.maintenance.partitions import PartitionFinder
from windrow_service.usecases.maintenance.policies import DefinePolicy
from windrow_service.usecases.maintenance.preview import PreviewRetention
from windrow_service.usecases.maintenance.reads import PastReads
from windrow_service.usecases.maintenance.removals import DecideRemoval
from windrow_service.usecases.maintenance.request import RequestWork
from windrow_service.usecases.maintenance.retention import RetentionFinder
from windrow_service.usecases.maintenance.table_policies import ChangeTablePolicy
from windrow_service.usecases.packs.plan import PlanPacking
from windrow_service.usecases.snapshots.partitions import PartitionReader
from windrow_service.usecases.snapshots.scans import ManifestReader
from windrow_service.wiring.adapters import Adapters

_PURGE_EVERY_S = 60.0


def open_maintenance(
    adapters: Adapters,
    manifests: ManifestReader,
    partitions: PartitionReader,
    plan_packing: PlanPacking,
) -> MaintenanceServices:
    """Return the services of maintenance; decide, and forget old receipts, in the background."""
    settings, database = adapters.settings.maintenance, adapters.database
    now = adapters.clock
    policies = adapters.stored(SqlPolicyStore(database, now), "policies")
    work = adapters.stored(SqlWorkStore(database, adapters.watch.meters), "receipts")
    # Plans must not wait for a round, which may look at all files of large tables.
    runner = adapters.threads("maintenance")
    retention = RetentionFinder(adapters.tables, adapters.snapshots, partitions, runner)
    define = DefinePolicy(
        policies=policies,
        runner=adapters.runner,
        filter_limits=adapters.filter_limits,
    )
    finder = PartitionFinder(adapters.snapshots, manifests)
    decide = Decide(
        adapters.tables,
        policies,
        finder,
        PackingFinder(snapshots=adapters.snapshots, plan=plan_packing),
        PastReads(adapters.stored(SqlPlanHistory(database), "plan_history")),
        DecideRemoval(finder=retention),
        work,
        runner,
        now,
    )
    rounds = MaintenanceRounds(decide, policies, work, now)

    async def purge() -> int:
        return await work.purge(now() - settings.max_age, settings.max_receipts)

    adapters.repeat("decide about maintenance", rounds.run_if_free, settings.every.total_seconds())
    adapters.repeat("forget old receipts", purge, _PURGE_EVERY_S)
    return MaintenanceServices(
        tables=adapters.tables,
        policies=policies,
        define=define,
        preview_retention=PreviewRetention(
            tables=adapters.tables,
            policies=policies,
            define=define,
            finder=retention,
            clock=now,
        ),
        rounds=rounds,
        claim=ClaimWork(
            tables=adapters.tables, policies=policies, finder=retention, work=work, clock=now
        ),
        change=ChangeTablePolicy(policies=policies, define=define),
        request=RequestWork(
            tables=adapters.tables,
            policies=policies,
            finder=finder,
            work=work,
            runner=runner,
            clock=now,
        ),
        work=work,
        clock=now,
    )
