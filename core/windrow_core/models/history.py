"""Wire models of the history of plans: what is kept of a plan after it has expired."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, StringConstraints

from windrow_core.models.base import Answer, Request, Whole
from windrow_core.models.options import OptionSource, PlanOptions
from windrow_core.models.plans import PlanSummary

PLAN_ID_PATTERN = r"^[0-9a-f]{32}$"
# Reports of one request.
MAX_SCAN_REPORTS = 1_000

_Count: TypeAlias = Annotated[int, Whole(0, 2**53)]
_Seconds: TypeAlias = Annotated[float, Field(strict=True, ge=0, le=1e9, allow_inf_nan=False)]


class WayFigures(Request):
    """What was read in one of two ways: in groups, or by Spark's own reader."""

    files: _Count = 0
    bytes: _Count = 0
    rows: _Count = 0
    seconds: _Seconds = Field(
        default=0.0,
        description="Time of all tasks together, without what the query does with rows.",
    )


class ScanReport(Request):
    """What a scan of a query really took, as its driver measured it."""

    plan_id: Annotated[str, StringConstraints(pattern=PLAN_ID_PATTERN)]
    seconds: _Seconds = Field(
        description="From when the driver had the plan until its query ended."
    )
    planning_seconds: _Seconds = Field(description="How long the driver waited for the plan.")
    groups: WayFigures = Field(default=WayFigures(), description="Read in groups.")
    native: WayFigures = Field(default=WayFigures(), description="Read by Spark's own reader.")
    cache_hits: _Count = Field(
        default=0, description="Number of files that were in the cache of the host that read them."
    )
    requests: _Count = Field(default=0, description="Number of requests to object stores.")
    retries: _Count = Field(default=0, description="Number of requests that were repetitions.")
    waited_seconds: _Seconds = Field(
        default=0.0,
        description="Time that requests waited for the store, or to keep to "
        "`requests_per_second`; summed over all requests, which wait side by side.",
    )
    unreadable_packs: Annotated[
        list[Annotated[str, StringConstraints(max_length=4_096)]], Field(max_length=100)
    ] = Field(
        default=[],
        exclude_if=lambda packs: not packs,
        description="Paths of packs that the driver or a task could not read, so that the files were "
        "read. The coordinator compares these packs with their digests soon.",
    )


class ScanReports(Request):
    """Reports of scans, several at once."""

    scans: Annotated[list[ScanReport], Field(max_length=MAX_SCAN_REPORTS)]


class PastPlan(Answer):
    """A plan that was made, or could not be made."""

    number: int = Field(description="Higher than that of every earlier plan.")
    plan_id: str
    table: str
    snapshot_id: int | None = Field(
        default=None,
        description="For other engines, that of an Iceberg table's own metadata. Null if the plan failed "
        "before it was known, or if the table has none yet.",
    )
    principal: str = Field(description="Name of the caller's token.")
    engine: str | None = Field(
        default=None,
        description="What another engine calls itself that planned a scan through the catalog for "
        "other engines; null for plans of Windrow's own.",
    )
    status: Literal["completed", "failed"]
    created_at: datetime = Field(description="When it was requested.")
    expires_at: datetime = Field(description="The time until which its groups are kept.")
    seconds: float | None = Field(
        default=None, description="From the request until the plan was stored."
    )
    filter: str | None = Field(
        default=None,
        description="The request's filter, as SQL text, cut after 2,000 characters.",
    )
    partition_count: int | None = Field(
        default=None,
        description="Number of partitions that the request names by number; null if it names none.",
    )
    limit: int | None = None
    column_count: int | None = Field(default=None, description="Number of columns to read.")
    options: PlanOptions | None = Field(
        default=None, description="The options that the plan was made with; null if it failed."
    )
    option_sources: dict[str, OptionSource] = Field(
        default={}, description="Where values that are not the default come from."
    )
    summary: PlanSummary | None = Field(default=None, description="Null if it failed.")
    groups_of: str | None = Field(
        default=None,
        description="The plan whose groups it shares, which was made for an equal request; the "
        "times of planning are from that plan.",
    )
    problem: dict[str, object] | None = Field(
        default=None, description="The RFC 9457 problem that the plan failed with."
    )
    scan: ScanReport | None = Field(
        default=None,
        description="What reading it really took; null unless its driver has reported it.",
    )


class PlanHistoryPage(Answer):
    """One page of plans, newest first."""

    plans: list[PastPlan]
    next_page_token: str | None = None
