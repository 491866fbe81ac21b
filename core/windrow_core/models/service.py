"""Wire models of the coordinator's configuration and health, and of problems."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from windrow_core.errors import Call
from windrow_core.models.base import Answer
from windrow_core.models.maintenance_work import ReceiptState
from windrow_core.models.options import PlanOptions
from windrow_core.remedies import WORDS, Edge, worded


class Limits(Answer):
    """Limits that the coordinator enforces."""

    max_body_bytes: int
    max_publish_bytes: int
    max_publish_decoded_bytes: int = Field(
        description="Maximum memory of a published inventory after decoding."
    )
    max_footer_bytes: int = Field(description="Maximum size of a data file's footer at a refresh.")
    max_fields: int = Field(
        default=10_000,
        description="Maximum number of fields of a table, or of a file's schema: lists, maps, structs "
        "and their fields count.",
    )
    max_filter_nodes: int
    max_filter_depth: int
    max_plan_files: int
    max_page_groups: int
    default_page_groups: int
    max_page_splits: int
    max_plan_bytes: int
    plan_ttl_seconds: int
    max_write_keys: int = Field(description="Maximum number of keys in a write plan.")
    max_connections: int
    max_head_bytes: int = Field(description="Maximum size of a request line with its headers.")
    max_headers: int
    head_timeout_seconds: int = Field(
        description="Seconds from opening a connection to the end of the headers."
    )
    body_timeout_seconds: int = Field(
        description="Seconds for which a body may arrive at less than 1,024 bytes per second."
    )
    requests_per_minute: int = Field(
        default=0,
        description="Maximum number of requests of one caller in a minute; 0 means any number.",
    )
    wrong_tokens_per_minute: int = Field(
        default=0,
        description="Maximum number of wrong tokens from one address, or with one client id, in a "
        "minute; 0 means any number.",
    )


class ServiceConfig(Answer):
    """The coordinator's configuration, as far as callers need it."""

    version: str
    strategies: list[str]
    defaults: PlanOptions
    limits: Limits
    allowed_locations: list[str]


class Health(Answer):
    """A health check's answer."""

    status: Literal["ok", "degraded"]
    checks: dict[str, Literal["ok", "unavailable", "full", "skewed"]] = Field(
        default={},
        description="Result for each part that was checked: `database`, `cache`, `clock`.",
    )


class ReplicaInfo(Answer):
    """A coordinator that shares the database with the others."""

    host: str = Field(description="Name of its host, or of its pod.")
    process: int
    version: str
    started_at: datetime
    seen_at: datetime = Field(description="When it last reported.")


class TableRefresh(Answer):
    """When the listing of a table that its snapshot agrees with began."""

    table: str
    began_at: datetime


class Trouble(Answer):
    """Something that went wrong and is not yet resolved."""

    kind: Literal["refresh", "write", "worker", "maintenance"]
    name: str = Field(description="The table or, of a `worker`, its id.")
    at: datetime
    reason: str


class CoordinatorStatus(Answer):
    """What a coordinator's operator asks first, of the tables that the caller may read."""

    version: str = Field(description="Version of the replica that answers.")
    health: Health
    replicas: list[ReplicaInfo] | None = Field(
        description="The replicas that reported in the last minute; null for callers who may not "
        "read every table."
    )
    tables: int
    files: int
    without_snapshot: int = Field(description="Number of tables that were never refreshed.")
    oldest_refresh: TableRefresh | None = Field(
        description="The table that was listed the longest ago; null if none was."
    )
    work: dict[ReceiptState, int] = Field(description="Pieces of maintenance by their state.")
    is_paused: bool = Field(description="Whether all maintenance is paused.")
    workers: int | None = Field(
        description="Number of live workers with a cache; null if the cache map does not answer."
    )
    troubles: list[Trouble] = Field(
        description="Tables whose last refresh failed, writes whose drivers are presumed dead, workers "
        "that fell silent in the last day, and the latest maintenance that failed: at most 20 of each."
    )


class Remedy(BaseModel):
    """The call that helps, for programs; `detail` has it in words."""

    call: str = Field(
        description="An `operationId` of this API, or `repeat`: the same request again."
    )
    arguments: dict[str, str | int | bool | None] = Field(
        default_factory=dict,
        description="Parameters of the call; null is a value that the caller has to choose.",
    )
    text: str = Field(description="The part of `detail` that words the call.")


class Problem(BaseModel):
    """An RFC 9457 problem. `type` is stable: programs should branch on it."""

    model_config = ConfigDict(extra="allow")

    type: str
    title: str
    status: int
    detail: str
    instance: str | None = None
    request_id: str | None = Field(
        default=None, description="The id in `X-Request-Id` and in the coordinator's log."
    )
    remedy: Remedy | None = None

    def worded(self, edge: Edge) -> str:
        """Return the detail with an edge's words for the remedy, if it has some."""
        if self.remedy is None:
            return self.detail
        call = Call(self.remedy.call, **self.remedy.arguments)
        if call.signature not in WORDS:
            return self.detail
        return self.detail.replace(self.remedy.text, worded(call, edge))
