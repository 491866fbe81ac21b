"""Snapshots of tables: publish inventories and changes, list snapshots, drop old ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.types as pt

from windrow_calls.arguments import checked
from windrow_calls.errors import UnsupportedAnswerError
from windrow_calls.listing import Listing
from windrow_calls.transport import ARROW_STREAM, Calls, read_answer, table_path
from windrow_core.files.numbered_layouts import with_numbers
from windrow_core.files.streams import stream_of
from windrow_core.models import (
    AddedFilesInfo,
    ExpiredSnapshots,
    PublishedSnapshot,
    SnapshotExpiry,
    SnapshotInfo,
    SnapshotPage,
)

# Inventory rows: an Arrow table or, for few files, one mapping per file from column to value.
FileRows: TypeAlias = pa.Table | Sequence[Mapping[str, Any]]

_STRINGS = pa.schema([("path", pa.string()), ("change", pa.string())])


class SnapshotCalls(Calls):
    """Calls about snapshots."""

    def snapshots(self, name: str) -> Listing[SnapshotInfo]:
        """Return a table's snapshots, newest first.

        Example:
            newest = client.snapshots("sales.events")[0]
            newest.snapshot_id, newest.file_count
        """
        return self._transport.listing(SnapshotPage, "snapshots", f"{table_path(name)}/snapshots")

    def partition_values(
        self, name: str, snapshot_id: int, *, figures: Sequence[str] = ()
    ) -> pa.Table:
        """Return the partitions of a snapshot: the distinct partition values among its files.

        The order of the rows is that of the values, nulls first, and never changes; a partition's
        row, from 0, is its number, which `partitions` of `plan` refers to. A table without
        partition columns has one partition, without values, if it has files.

        Args:
            name: Name of the table.
            snapshot_id: Id of a snapshot of the table.
            figures: Columns of whole numbers, of decimals of at most 18 digits, or of dates.

        Returns:
            The partition columns with their Arrow types, then three columns of int64: `file_count`,
            `size_bytes`, and `row_count`, which is null if the rows of some file of the partition
            are not known, or some may be deleted. A partition column may have one of these names,
            too, so find these three by position. The schema's metadata has the `registration` of the
            table, as plans have it.

            With `figures`, further columns: `packed_rows`, the rows of a partition all of whose files
            are in packs, and null of others; and for each column a struct of the `count` of its
            values, the `least`, the `greatest` and their sum, `total`: integers, of decimals without
            their scale, of dates days since 1970; null where packs have no figures.

        Raises:
            UnsupportedAnswerError: The answer is no Arrow stream.

        Example:
            snapshot = client.table("sales.events").current_snapshot
            client.partition_values("sales.events", snapshot.snapshot_id).to_pandas()
        """
        answer = self._transport.call(
            "GET",
            f"{table_path(name)}/snapshots/{snapshot_id}/partitions",
            params={"figures": list(figures)},
            headers={"Accept": ARROW_STREAM},
        )
        try:
            with pa.ipc.open_stream(pa.py_buffer(answer.content)) as stream:
                return stream.read_all()
        except (pa.ArrowException, OSError) as error:
            raise UnsupportedAnswerError(
                f"{answer.request.method} {answer.request.url} answered with something that is no "
                f"Arrow stream ({error}): is this a Windrow coordinator?"
            ) from error

    def added_files(
        self,
        name: str,
        snapshot_id: int,
        *,
        since: int,
        first: int = 0,
        max_files: int | None = None,
        max_bytes: int | None = None,
    ) -> AddedFilesInfo:
        """Count the files that a snapshot has and an older one lacks, in the order of their paths.

        Args:
            name: Name of the table.
            snapshot_id: Id of the snapshot.
            since: Id of the older snapshot; 0 means before the first.
            first: Position of the first file to count.
            max_files: Most files up to `end` of the answer.
            max_bytes: Most bytes up to `end`; a single file may have more.
        """
        params: dict[str, str | int] = {"since": since, "first": first}
        params |= {} if max_files is None else {"max_files": max_files}
        params |= {} if max_bytes is None else {"max_bytes": max_bytes}
        path = f"{table_path(name)}/snapshots/{snapshot_id}/added-files"
        return read_answer(AddedFilesInfo, self._transport.call("GET", path, params=params))

    def publish(
        self,
        name: str,
        files: FileRows,
        *,
        if_match: str | None = None,
        listed_at: datetime | None = None,
        write_id: str | None = None,
    ) -> PublishedSnapshot:
        """Publish an inventory that was taken elsewhere as the table's current snapshot.

        This is how the coordinator learns which hosts hold a table's files. Files that have not
        changed since the current snapshot keep their values in columns that are not sent.

        Args:
            name: Name of the table.
            files: All files of the table: `path` (relative to the location), `size_bytes`,
                `mtime_ns`, `row_count` and, if known, `hosts` (lists of names), `bucket`,
                `row_group_offsets`, `stats` and more; an Arrow table or, for few files, one
                mapping per file.
            if_match: The table's ETag, or for example `snapshot-7` for its current snapshot; if the
                table has changed since then, nothing is published.
            listed_at: When the listing of the files began, with a time zone.
            write_id: Id of the write that moved the files into the table.

        Example:
            file = {"path": "ds=2026-11-01/a.parquet", "size_bytes": 1024, "mtime_ns": 0, "row_count": 9}
            client.publish("sales.copies", [file])
        """
        return self._publish(name, inventory_stream(files), "full", if_match, listed_at, write_id)

    def publish_delta(
        self,
        name: str,
        *,
        added: FileRows = (),
        removed: Sequence[str] | pa.Array = (),
        if_match: str | None = None,
        listed_at: datetime | None = None,
        write_id: str | None = None,
    ) -> PublishedSnapshot:
        """Add files to a table's current snapshot, and remove others.

        Without `if_match`, the change is applied to the snapshot that is current when it arrives.

        Args:
            name: Name of the table.
            added: New files, as for `publish`; each replaces a file with the same path.
            removed: Paths of removed files.
            if_match: As for `publish`.
            listed_at: As for `publish`; every change up to then must be included.
            write_id: As for `publish`; with it, removed files need not be in the current snapshot.

        Example:
            file = {"path": "ds=2026-11-02/b.parquet", "size_bytes": 1024, "mtime_ns": 0, "row_count": 9}
            client.publish_delta("sales.copies", added=[file])
        """
        stream = change_stream(added, removed)
        return self._publish(name, stream, "delta", if_match, listed_at, write_id)

    def _publish(
        self,
        name: str,
        stream: bytes,
        mode: str,
        if_match: str | None,
        listed_at: datetime | None,
        write_id: str | None,
    ) -> PublishedSnapshot:
        headers = {"Content-Type": ARROW_STREAM}
        if if_match is not None:
            headers["If-Match"] = if_match
        params: dict[str, str | int] = {"mode": mode}
        if listed_at is not None:
            params["listed_at"] = listed_at.isoformat()
        if write_id is not None:
            params["write_id"] = write_id
        answer = self._transport.call(
            "POST", f"{table_path(name)}/snapshots", body=stream, params=params, headers=headers
        )
        return read_answer(PublishedSnapshot, answer)

    def expire_snapshots(
        self, name: str, *, keep_last: int | None = None, max_age: timedelta | None = None
    ) -> list[int]:
        """Drop a table's old snapshots, and return their ids.

        The current snapshot and those that plans are pinned to always stay.

        Args:
            name: Name of the table.
            keep_last: Number of newest snapshots that stay; the coordinator's setting by default.
            max_age: Younger snapshots stay too, up to the coordinator's maximum number; the
                coordinator's setting by default.

        Example:
            client.expire_snapshots("sales.events", keep_last=10)
        """
        max_age_seconds = None if max_age is None else int(max_age.total_seconds())
        expiry = checked(
            SnapshotExpiry, {"keep_last": keep_last, "max_age_seconds": max_age_seconds}
        )
        path = f"{table_path(name)}/snapshots/expire"
        answer = self._transport.call("POST", path, body=expiry.model_dump_json())
        return read_answer(ExpiredSnapshots, answer).snapshot_ids


def inventory_stream(files: FileRows) -> bytes:
    """Return all files of a table as an Arrow IPC stream."""
    return _stream(_table(files))


def change_stream(added: FileRows, removed: Sequence[str] | pa.Array) -> bytes:
    """Return a change of a table's files as an Arrow IPC stream.

    Args:
        added: Files that are new, or replace files with the same paths.
        removed: Paths of removed files.
    """
    new, old = _table(added), pa.array(removed, pa.string())
    changes = [
        new.append_column("change", pa.array(["added"] * len(new), pa.string())),
        pa.table([old, pa.array(["removed"] * len(old), pa.string())], schema=_STRINGS),
    ]
    return _stream(pa.concat_tables(changes, promote_options="default"))


def _table(files: FileRows) -> pa.Table:
    if isinstance(files, pa.Table):
        return files
    names = dict.fromkeys(name for row in files for name in row)
    if not names:
        return _STRINGS.empty_table().select(["path"])
    return pa.table({name: [row.get(name) for row in files] for name in names})


def _stream(files: pa.Table) -> bytes:
    files = with_numbers(files)
    return stream_of(
        files.cast(pa.schema([_plain(field) for field in files.schema], files.schema.metadata))
    )


def _plain(field: pa.Field) -> pa.Field:
    """Return a column as coordinators accept it, without dictionaries, views and extensions."""
    return field.with_type(_plain_type(field.type))


def _plain_type(type_: pa.DataType) -> pa.DataType:
    if isinstance(type_, pa.BaseExtensionType):
        return _plain_type(type_.storage_type)
    if pt.is_dictionary(type_):
        return _plain_type(type_.value_type)
    if pt.is_struct(type_):
        return pa.struct([_plain(field) for field in type_])
    if pt.is_list(type_) or pt.is_fixed_size_list(type_):
        return pa.list_(_plain(type_.value_field))
    if pt.is_large_list(type_):
        return pa.large_list(_plain(type_.value_field))
    if pt.is_string_view(type_):
        return pa.large_string()
    return pa.large_binary() if pt.is_binary_view(type_) else type_
