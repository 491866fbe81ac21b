"""Wire models of cache rules and of cached files."""

from __future__ import annotations

from typing import Annotated

from pydantic import AwareDatetime, Field

from windrow_core.models.base import Answer, ByteSize, Request, TableName
from windrow_core.models.filters import Filter

CACHE_RULE_PATTERN = r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$"


class CacheRuleDefinition(Request):
    """Which files of a table are cacheable."""

    filter: Filter = Field(
        description="A filter on partition columns only. A file is cacheable if the filter is "
        "TRUE for its partition values."
    )
    expires_at: AwareDatetime | None = Field(default=None, description="When the rule expires.")
    max_bytes: ByteSize | None = Field(
        default=None,
        description="Maximum bytes that the rule makes cacheable. Of the matching files, those "
        "whose paths sort last are chosen first: with folders by date, the newest.",
    )


class CacheRule(Answer):
    """A cache rule of a table."""

    table: TableName
    rule: str
    filter: Filter = Field(description="The filter as it was given.")
    expires_at: AwareDatetime | None
    max_bytes: int | None
    created_at: AwareDatetime


class CacheRules(Answer):
    """All rules of a table by name, including expired ones that are not yet removed."""

    rules: list[CacheRule]


class CacheRuleFigures(CacheRule):
    """A rule, and its effect on the table's current snapshot."""

    file_count: int = Field(description="Number of files that the rule makes cacheable.")
    size_bytes: int
    cached_files: int = Field(description="Number of these files that a running worker holds.")
    cached_bytes: int


class WorkerFigures(Answer):
    """The files of a table that one host holds."""

    host: str
    file_count: int = Field(
        description="Number of cacheable files of the current snapshot that the host holds."
    )
    size_bytes: int
    other_files: int = Field(
        description="Number of other files that it holds: files of rules that have ended, and old "
        "versions of changed files."
    )


class TableCache(Answer):
    """The cacheable files of a table's current snapshot, and where they are cached."""

    table: TableName
    snapshot_id: int
    cacheable_files: int = Field(
        description="Number of cacheable files; a file that several rules match counts once."
    )
    cacheable_bytes: int
    cached_files: int
    cached_bytes: int
    rules: Annotated[list[CacheRuleFigures], Field(description="Rules by name.")]
    workers: Annotated[list[WorkerFigures], Field(description="Running workers by host.")]
    complete: bool = Field(
        description="False if the cache map does not answer; every file then counts as not cached."
    )
