"""Wire models of the audit log: who changed what."""

from __future__ import annotations

import re
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
    "work",
    "pack",
    "erasure",
]
_ID_CHARACTERS = 8
AuditedOutcome: TypeAlias = Literal["created", "changed", "deleted", "cancelled"]


class FieldChange(Answer):
    """One field that a change set, altered or removed."""

    name: str = Field(
        description="Name of the field; `plan_options.parallelism` for a field of an object."
    )
    before: str | None = Field(
        default=None,
        description="Its value before, as text: lists with commas, filters as SQL; null if it was "
        "not set. Of values over 1,000 characters, the part that differs.",
    )
    after: str | None = Field(default=None, description="The same after the change.")


class AuditRecord(Answer):
    """One change."""

    number: int = Field(description="Higher than that of every earlier change.")
    at: datetime
    principal: str = Field(
        description="Name of the caller's token; `coordinator` for its own upkeep, and `command:` "
        "with the user's name for commands on the database."
    )
    operation: str = Field(
        description="The call, by its id in openapi.yaml, the form of a page, or the command."
    )
    request_id: str | None = Field(
        default=None, description="`X-Request-Id` of the answer, also found in the log."
    )
    kind: AuditedKind
    outcome: AuditedOutcome
    table: str | None = None
    item: str | None = Field(
        default=None,
        description="What was changed: the snapshots, refresh, write, cache rule, token, work or pack, or the "
        "receipt of an erasure.",
    )
    before: str | None = Field(
        default=None,
        description="Before the change: the version (ETag) of the table or rule, or the state of "
        "the write; of its protection, `protected` or `not protected`.",
    )
    after: str | None = Field(default=None, description="The same after the change.")
    fields: list[FieldChange] = Field(
        default=[],
        description="What differs in the definition of a table, cache rule or policy, in the "
        "budget, in a token's scopes, or in files, rows, bytes and columns of a new snapshot and the "
        "one before; empty for other changes, and for those that an earlier version of Windrow "
        "recorded.",
    )

    @property
    def description(self) -> str:
        """What was done, such as `table changed: format: parquet → orc`."""
        item = self.item or ""
        # The ids of writes and refreshes are told apart by their first digits.
        name = item[:_ID_CHARACTERS] if re.fullmatch("[0-9a-f]{32}", item) else item
        what = " ".join(filter(None, (self.kind.replace("_", " "), name, self.outcome)))
        return ": ".join(filter(None, (what, self.difference)))

    @property
    def difference(self) -> str:
        """What the change altered, as text; empty if that is only a version."""
        if self.kind in ("write", "protection"):
            return " → ".join(filter(None, (self.before, self.after)))
        return "; ".join(map(self._field_text, self.fields))

    def _field_text(self, field: FieldChange) -> str:
        if self.outcome == "created" and field.before is None:
            return f"{field.name}: {field.after}"
        if self.outcome == "deleted":
            return f"{field.name}: {field.before}"
        return f"{field.name}: {field.before or 'not set'} → {field.after or 'not set'}"


class AuditPage(Answer):
    """One page of changes, newest first."""

    changes: list[AuditRecord]
    next_page_token: str | None = None
