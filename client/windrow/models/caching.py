"""Cache rules on the wire: which files of a table are cacheable, and where they are cached."""

from __future__ import annotations

from typing import Annotated

from pydantic import AwareDatetime, Field

from windrow.models.base import Answer, ByteSize, Request, TableName
from windrow.models.filters import Filter

CACHE_RULE_PATTERN = r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$"


class CacheRuleDefinition(Request):
    """Which files of a table are cacheable."""

    filter: Filter = Field(
        description="On partition columns alone. A file is cacheable if its values make it TRUE."
    )
    expires_at: AwareDatetime | None = Field(
        default=None, description="When the rule ends by itself."
    )
    max_bytes: ByteSize | None = Field(
        default=None,
        description="Most bytes that the rule makes cacheable. Of the files that match, those "
        "last in the order of their paths come first: with folders by date, the newest.",
    )


class CacheRule(Answer):
    """A rule of a table."""

    table: TableName
    rule: str
    filter: Filter = Field(description="As it was given.")
    expires_at: AwareDatetime | None
    max_bytes: int | None
    created_at: AwareDatetime


class CacheRules(Answer):
    """All rules of a table, by name; those that have expired too, until they are forgotten."""

    rules: list[CacheRule]


class CacheRuleFigures(CacheRule):
    """A rule, and what it does to the current snapshot of its table."""

    file_count: int = Field(description="Files that it makes cacheable.")
    size_bytes: int
    cached_files: int = Field(description="Those that a worker that lives holds.")
    cached_bytes: int


class WorkerFigures(Answer):
    """What one host holds of a table."""

    host: str
    file_count: int = Field(description="Cacheable files of the current snapshot that it holds.")
    size_bytes: int
    other_files: int = Field(
        description="Other files: of rules that have ended, or as they were before a change."
    )


class TableCache(Answer):
    """What is cacheable of a table's current snapshot, and where it is cached."""

    table: TableName
    snapshot_id: int
    cacheable_files: int = Field(description="Each once, however many rules match it.")
    cacheable_bytes: int
    cached_files: int
    cached_bytes: int
    rules: Annotated[list[CacheRuleFigures], Field(description="By name.")]
    workers: Annotated[list[WorkerFigures], Field(description="That live, by host.")]
    complete: bool = Field(
        description="False while the cache map does not answer: nothing seems cached then."
    )
