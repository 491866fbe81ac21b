"""Plan records: pin plans to snapshots, find equal plans, and show plans to callers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace

from windrow_core.models import Plan, PlanRequest
from windrow_core.models.tables import local_times
from windrow_service.usecases.plans.drafts import Draft
from windrow_service.usecases.plans.errors import PlanNotCompletedError
from windrow_service.usecases.plans.options import settle
from windrow_service.usecases.plans.ports import PlanRecord
from windrow_service.usecases.snapshots.ports import Snapshot
from windrow_service.usecases.tables.ports import StoredTable

# Fields of a request that say how a plan is delivered, not what it is.
_NOT_OF_THE_PLAN = {"page_size", "max_staleness", "reuse"}
# The settled options stand for these: they are part of the plan.
_OPTIONS = {"options", "session_options"}


def info_of(plan: PlanRecord) -> Plan:
    """Return a completed plan as callers see it."""
    if plan.info is None:
        reason = None if plan.problem is None else str(plan.problem["detail"])
        raise PlanNotCompletedError(plan.plan_id, reason)
    return plan.info


def may_refresh(request: PlanRequest) -> bool:
    """Return whether the table may have to be refreshed first."""
    return request.max_staleness is not None and not request.snapshot_id and request.version is None


def pinned(plan: PlanRecord, table: StoredTable, snapshot: Snapshot) -> PlanRecord:
    """Return a plan with the snapshot that it is made from."""
    key = _key_of(table, snapshot, plan.request)
    return replace(plan, snapshot_id=snapshot.info.snapshot_id, request_key=key)


def _key_of(table: StoredTable, snapshot: Snapshot, request: PlanRequest) -> str:
    resolution = settle(request, table.info.definition)
    parts = [
        table.table_id,
        table.info.definition.model_dump(mode="json", exclude={"plan_options", "imported_from"}),
        snapshot.info.snapshot_id,
        request.model_dump(mode="json", exclude=_NOT_OF_THE_PLAN | _OPTIONS | {"partitions"}),
        # As they are: copying thousands of ranges takes longer than everything else here.
        request.partitions,
        resolution.explicit.model_dump(mode="json"),
        dict(resolution.sources),
    ]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def same_groups(twin: PlanRecord, plan: PlanRecord) -> PlanRecord:
    """Return the plan with the groups of an earlier one."""
    assert twin.info is not None
    times = {"plan_id": plan.plan_id, "created_at": plan.created_at, "expires_at": plan.expires_at}
    info = twin.info.model_copy(update=times)
    return replace(plan, state="completed", info=info, body_id=twin.body_id)


def described(
    table: StoredTable,
    snapshot: Snapshot,
    plan: PlanRecord,
    draft: Draft,
    seconds: Mapping[str, float],
) -> Plan:
    """Return a plan as callers see it, without groups; `seconds` has the time of each phase."""
    definition = table.info.definition
    reading = definition.kind.reading
    return Plan(
        plan_id=plan.plan_id,
        status="completed",
        table=plan.request.table,
        registration=table.table_id,
        snapshot_id=snapshot.info.snapshot_id,
        created_at=plan.created_at,
        expires_at=plan.expires_at,
        location=definition.location,
        format=reading.files.name,
        # Options of a table with a log say where the log is, not how its files are read.
        format_options={} if reading.is_logged else definition.format_options,
        transactional=definition.transactional,
        valid_write_ids=snapshot.info.valid_write_ids,
        logged=reading.is_logged,
        file_fields=draft.file_fields,
        outlines=draft.outlines,
        packs=draft.packs,
        sort_columns=draft.sort_columns,
        partition_columns=snapshot.info.partition_columns,
        local_times=local_times(definition, snapshot.info.partition_columns),
        columns=draft.columns,
        hidden_columns=draft.hidden_columns,
        filter=draft.filter,
        limit=plan.request.limit,
        requested_options=draft.options.explicit,
        options=draft.options.options,
        option_sources=dict(draft.options.sources),
        summary=draft.summary.model_copy(
            update={
                "planning_seconds": round(sum(seconds.values()), 6),
                "phase_seconds": {phase: round(took, 6) for phase, took in seconds.items()},
            }
        ),
        groups=[],
        next_page_token=None,
    )
