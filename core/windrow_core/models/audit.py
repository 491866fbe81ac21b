"""Wire models of the audit log: who changed what."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, TypeAlias

from pydantic import Field

from windrow_core.models.base import Answer

AuditedKind: TypeAlias = Literal[
    "table",
    "partitions",
    "snapshot",
    "refresh",
    "write",
    "cache_rule",
    "token",
    "policy",
    "budget",
    "protection",
]
AuditedOutcome: TypeAlias = Literal["created", "changed", "deleted", "cancelled"]


class AuditRecord(Answer):
    """One change."""

    number: int = Field(description="Higher than that of every earlier change.")
    at: datetime
    principal: str = Field(
        description="Name of the caller's token; `coordinator` for its own upkeep, and `command:` "
        "with the user's name for commands on the database."
    )
    operation: str = Field(description="The call, by its id in openapi.yaml, or the command.")
    request_id: str | None = Field(
        default=None, description="`X-Request-Id` of the answer, also found in the log."
    )
    kind: AuditedKind
    outcome: AuditedOutcome
    table: str | None = None
    item: str | None = Field(
        default=None,
        description="What was changed: the snapshots, refresh, write, cache rule or token.",
    )
    before: str | None = Field(
        default=None,
        description="Before the change: the version (ETag) of the table or rule, or the state of "
        "the write; of its protection, `protected` or `not protected`.",
    )
    after: str | None = Field(default=None, description="The same after the change.")


class AuditPage(Answer):
    """One page of changes, newest first."""

    changes: list[AuditRecord]
    next_page_token: str | None = None
