"""Records of plans, as their stores receive them."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

from windrow_core.models import Plan, PlanOptions, PlanRequest, PlanSummary
from windrow_service.usecases.plans.ports import PlanBody, PlanChunk, PlanRecord

START = datetime(2026, 11, 21, tzinfo=timezone.utc)
HOUR = timedelta(hours=1)
SMALL = PlanBody(head=b"h", chunks=[PlanChunk(first_group=0, data=b"abc")], tail=b"t")
LARGE = PlanBody(
    head=b"h",
    chunks=[PlanChunk(first_group=at, data=bytes([at])) for at in (0, 5, 9)],
    tail=b"t",
)
EMPTY = PlanBody(head=b"h", chunks=[], tail=b"t")


def submitted(name: str, **fields: Any) -> PlanRecord:
    plan = PlanRecord(
        plan_id=name,
        principal="me",
        table_id=1,
        snapshot_id=1,
        state="submitted",
        created_at=START,
        expires_at=START + HOUR,
        request=PlanRequest(table="t"),
        request_key="key",
    )
    return replace(plan, **fields)


def completed(name: str, body_id: str | None = None, **fields: Any) -> PlanRecord:
    counts = dict.fromkeys(
        name for name, field in PlanSummary.model_fields.items() if field.annotation is int
    )
    info = Plan(
        plan_id=name,
        status="completed",
        table="t",
        snapshot_id=1,
        created_at=START,
        expires_at=START + HOUR,
        location="/t",
        columns=[],
        hidden_columns=[],
        partition_columns=[],
        sort_columns=[],
        filter=None,
        options=PlanOptions(),
        summary=PlanSummary.model_validate(
            dict.fromkeys(counts, 0) | {"strategy": "balanced", "planning_seconds": 0.5}
        ),
        groups=[],
        next_page_token=None,
    )
    return submitted(name, state="completed", info=info, body_id=body_id or name, **fields)
