"""What the coordinator says of itself, and problems, on the wire."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from windrow.models.base import Answer
from windrow.models.plans import PlanOptions


class Limits(Answer):
    """What the coordinator enforces."""

    max_body_bytes: int
    max_publish_bytes: int
    max_publish_decoded_bytes: int = Field(
        description="Memory that a published inventory may take once it is decoded."
    )
    max_footer_bytes: int = Field(description="Of a data file that is refreshed.")
    max_filter_nodes: int
    max_filter_depth: int
    max_plan_files: int
    max_page_groups: int
    default_page_groups: int
    max_page_splits: int
    max_plan_bytes: int
    plan_ttl_seconds: int
    max_write_keys: int = Field(description="Of a write plan.")
    max_connections: int
    max_head_bytes: int = Field(description="Of a request line and its headers.")
    max_headers: int
    head_timeout_seconds: int = Field(description="From a connection to the end of a head.")
    body_timeout_seconds: int = Field(
        description="For which a body may come slower than 1,024 bytes a second."
    )


class ServiceConfig(Answer):
    """How this coordinator is set up, as far as callers need to know."""

    version: str
    strategies: list[str]
    defaults: PlanOptions
    limits: Limits
    allowed_locations: list[str]


class Health(Answer):
    """A health check's answer."""

    status: Literal["ok", "degraded"]
    checks: dict[str, Literal["ok", "unavailable", "full"]] = Field(
        default={}, description="Each part that was asked: `database`, `cache`."
    )


class Problem(BaseModel):
    """An RFC 9457 problem. `type` is stable and is what a program branches on."""

    model_config = ConfigDict(extra="allow")

    type: str
    title: str
    status: int
    detail: str
    instance: str | None = None
    request_id: str | None = Field(
        default=None, description="As in `X-Request-Id`, and in the coordinator's log."
    )
