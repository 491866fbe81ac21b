"""Wire models of the history of plans: what is kept of a plan after it has expired."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from windrow_core.models.base import Answer
from windrow_core.models.options import OptionSource, PlanOptions
from windrow_core.models.plans import PlanSummary


class PastPlan(Answer):
    """A plan that was made, or could not be made."""

    number: int = Field(description="Higher than that of every earlier plan.")
    plan_id: str
    table: str
    snapshot_id: int | None = Field(
        default=None, description="Null if the plan failed before it was known."
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


class PlanHistoryPage(Answer):
    """One page of plans, newest first."""

    plans: list[PastPlan]
    next_page_token: str | None = None
