"""The call that returns a coordinator's status at a glance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from windrow_core.models import (
    CoordinatorStatus,
    MaintenanceReceipt,
    RefreshStatus,
    ReplicaInfo,
    TableRefresh,
    Trouble,
    WorkerInfo,
    WriteRecord,
)
from windrow_service.api.authentication import PrincipalDep
from windrow_service.api.authorization import READ, GuardedRouter
from windrow_service.api.problems import problem_responses
from windrow_service.api.services import (
    CachesDep,
    MaintenanceDep,
    OperationsDep,
    TablesDep,
    UpkeepDep,
    WritesDep,
)
from windrow_service.usecases.caches.errors import CacheUnavailableError
from windrow_service.usecases.maintenance.work import NEWEST

router = GuardedRouter(tags=["operations"])
# Of each kind.
_TROUBLES = 20


@router.get("/status", operation_id="status", dependencies=[READ], responses=problem_responses(503))
async def status(
    tables: TablesDep,
    writes: WritesDep,
    caches: CachesDep,
    upkeep: UpkeepDep,
    maintenance: MaintenanceDep,
    operations: OperationsDep,
    principal: PrincipalDep,
) -> CoordinatorStatus:
    """Return the coordinator's status: replicas, tables, maintenance, workers, and what went wrong.

    Only tables that the caller may read count.
    """
    now, among = caches.clock(), principal.tables
    live: int | None = None
    silent: Sequence[WorkerInfo] = ()
    try:
        live = len(await caches.heartbeats.live(now))
        silent = await caches.heartbeats.gone(now)
    except CacheUnavailableError:
        # As `health` says.
        pass
    present = await operations.replicas.present(now) if among.every else None
    overview = await upkeep.overview.now(now, 0, among)
    refreshes = await tables.refreshes.failed(_TROUBLES, among)
    writes_left = await writes.writes.recent(_TROUBLES, among, dead_only=True)
    failed = await maintenance.work.page(NEWEST, _TROUBLES, among, states=("failed",))
    return CoordinatorStatus(
        version=operations.config.version,
        health=await operations.readiness(),
        replicas=None
        if present is None
        else [ReplicaInfo.model_validate(one, from_attributes=True) for one in present],
        tables=overview.totals.tables,
        files=overview.totals.files,
        without_snapshot=overview.totals.without_snapshot,
        oldest_refresh=overview.oldest
        and TableRefresh(table=overview.oldest[0], began_at=overview.oldest[1]),
        work=dict(await maintenance.work.counts(among)),
        is_paused=(await maintenance.policies.budget()).info.pause,
        workers=live,
        troubles=[
            *map(_failed_refresh, refreshes),
            *map(_abandoned_write, writes_left),
            *map(_silent_worker, silent),
            *map(_failed_work, failed),
        ],
    )


def _failed_refresh(one: RefreshStatus) -> Trouble:
    return Trouble(kind="refresh", name=one.table, at=one.started_at, reason=_text(one.problem))


def _abandoned_write(one: WriteRecord) -> Trouble:
    reason = f"process {one.process} on {one.host} is presumed dead ({one.kind}, {one.state})"
    return Trouble(kind="write", name=one.table, at=one.updated_at, reason=reason)


def _silent_worker(one: WorkerInfo) -> Trouble:
    return Trouble(
        kind="worker", name=one.worker_id, at=one.expires_at, reason=f"silent, on {one.host}"
    )


def _failed_work(one: MaintenanceReceipt) -> Trouble:
    return Trouble(kind="maintenance", name=one.table, at=one.last_at, reason=one.text)


def _text(problem: Mapping[str, object] | None) -> str:
    """Return why a refresh failed."""
    return str((problem and (problem.get("detail") or problem.get("title"))) or "")
