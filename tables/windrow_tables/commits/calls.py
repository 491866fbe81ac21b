"""The coordinator's calls that commits need."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import pyarrow as pa

from windrow_core.models import (
    GainedFiles,
    PublishedSnapshot,
    TableInfo,
    TablePartition,
    WriteRecord,
    WriteUpdate,
)


class CommitCalls(Protocol):
    """The calls that a commit makes; `windrow.Client` has them."""

    def table(self, name: str, /) -> TableInfo:
        """Return a table with its current snapshot."""

    def partitions(self, name: str, /) -> Iterable[TablePartition]:
        """Return the partitions that a catalog lists of a table."""

    def writes(self, table: str, /, *, open_only: bool) -> Iterable[WriteRecord]:
        """Return a table's writes, newest first."""

    def write_record(self, table: str, write_id: str, /) -> WriteRecord:
        """Return one write."""

    def put_write(self, table: str, write_id: str, update: WriteUpdate, /) -> WriteRecord:
        """Begin a write, renew its lease, or record its next state."""

    def gained_files(self, table: str, since: int | None, /) -> GainedFiles:
        """Return the folders that have gained files since an older snapshot."""

    def publish(self, name: str, files: pa.Table, /, *, write_id: str) -> PublishedSnapshot:
        """Make an inventory the table's current snapshot."""

    def publish_delta(
        self, name: str, /, *, added: pa.Table, removed: Sequence[str], write_id: str
    ) -> PublishedSnapshot:
        """Add files to a table's current snapshot, and remove others."""
