"""Partitions are dropped: a commit that removes files, and adds none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from windrow_core.cards import Shown
from windrow_core.files.status import FileStatus
from windrow_core.models import WriteReport
from windrow_tables.commits.calls import CommitCalls
from windrow_tables.commits.errors import UnfitRemovalError
from windrow_tables.commits.table_write import begin
from windrow_tables.executor.filters import columns_of

if TYPE_CHECKING:
    from windrow_calls.plans import SplitPlan


_NOTHING_WRITTEN = WriteReport(
    scheme="exact",
    basis="static",
    target_file_bytes=0,
    tasks=0,
    rows=0,
    files=0,
    small_files=0,
    bytes=0,
    largest_file_bytes=0,
    row_hash="",
    count_seconds=0.0,
    write_seconds=0.0,
    check_seconds=0.0,
    commit_seconds=0.0,
)
_COLUMNS = ("path", *FileStatus._fields, "row_count")


class RemovalCalls(CommitCalls, Protocol):
    """The calls that a removal makes; `windrow.Client` has them."""

    def plan(self, table: str, /, *, filter: str | Mapping[str, Any]) -> SplitPlan:
        """Plan how to read a table."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Removal(Shown):
    """Partitions that were dropped, or would be.

    Attributes:
        table: Name of the table.
        folders: Their folders, relative to the table's location, in order.
        files: Number of files.
        size_bytes: Bytes of these files.
        rows: Rows of these files; None if those of one are unknown.
        snapshot_id: The snapshot without them; None if nothing was removed.
    """

    table: str
    folders: tuple[str, ...]
    files: int
    size_bytes: int
    rows: int | None
    snapshot_id: int | None = None


def drop_partitions(
    client: RemovalCalls,
    table: str,
    filter: str | Mapping[str, Any],
    *,
    dry_run: bool = False,
) -> Removal:
    """Remove the partitions that a filter selects, in one commit; see `Client.drop_partitions`."""
    if dry_run:
        return _removal(table, _files_of(client, table, filter))
    with begin(client, table, kind="removal") as write:
        files = _files_of(client, table, filter)
        removal = _removal(table, files)
        if not removal.files:
            return removal
        names = ["path", *(name for name in FileStatus._fields if name in files.column_names)]
        snapshot = write.commit(_NOTHING_WRITTEN, replaces=files.select(names))
    return replace(removal, snapshot_id=snapshot.snapshot_id)


def _files_of(client: RemovalCalls, table: str, filter: str | Mapping[str, Any]) -> pa.Table:
    """Return the files of the partitions: path, state and rows."""
    plan = client.plan(table, filter=filter)
    columns = [column.name for column in plan.info.partition_columns]
    if not columns:
        raise UnfitRemovalError(table, "it has no partition columns")
    tree = None if plan.info.filter is None else plan.info.filter.model_dump()
    names = {name.lower() for name in columns_of(tree)}
    # Statistics may prove a condition on other columns for every row of some files, which would go
    # and leave others of their partition.
    if not names or not names <= {name.lower() for name in columns}:
        reason = f"the filter must name partition columns only: {', '.join(columns)}"
        raise UnfitRemovalError(table, reason)
    splits = pc.list_flatten(plan.groups["splits"]).combine_chunks()
    fields = {field.name: pc.struct_field(splits, field.name) for field in splits.type}
    files = pa.table({name: fields[name] for name in _COLUMNS if name in fields})
    # A large file has several splits, one of which begins at 0.
    return files.filter(pc.equal(fields["start"], 0))


def _removal(table: str, files: pa.Table) -> Removal:
    paths = files["path"].to_pylist()
    return Removal(
        table=table,
        folders=tuple(sorted({path.rpartition("/")[0] for path in paths})),
        files=len(paths),
        size_bytes=pc.sum(files["size_bytes"]).as_py() or 0,
        rows=None if files["row_count"].null_count else pc.sum(files["row_count"]).as_py() or 0,
    )
