"""Positions in the history of a table: how much of what its snapshots add has been read."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace

from windrow_calls.coordinator import Coordinator
from windrow_core.models import AddedFiles
from windrow_spark.streaming.errors import RemovedFilesError, SnapshotsGoneError
from windrow_spark.streaming.options import SourceOptions


@dataclass(frozen=True, slots=True)
class Position:
    """How far a stream has read.

    Attributes:
        snapshot_id: The snapshot whose added files were read last.
        since: The snapshot that they were added to; 0 for the whole table.
        files: Number of them that were read, in the order of their paths; None means all.
    """

    snapshot_id: int
    since: int
    files: int | None = None

    @classmethod
    def of_text(cls, text: str) -> Position:
        """Return the position that a text of `to_text` is."""
        return cls(**json.loads(text))

    def to_text(self) -> str:
        """Return it as JSON, which checkpoints hold."""
        return json.dumps(asdict(self))

    def files_after(self, start: Position | None) -> AddedFiles:
        """Return the files between a position and this one, which a batch reads."""
        first: int | None = 0
        if start is not None and (start.snapshot_id, start.since) == (self.snapshot_id, self.since):
            first = start.files
        if first is None or self.snapshot_id == self.since:
            return AddedFiles(since=self.since, first=0, end=0)
        return AddedFiles(since=self.since, first=first, end=self.files)


class History:
    """Walks the snapshots of a table, one after another.

    Args:
        client: Client of the coordinator that knows the table.
        table: Name of the table.
        options: Options of the stream.
    """

    def __init__(self, client: Coordinator, table: str, options: SourceOptions) -> None:
        self._client = client
        self._table = table
        self._options = options
        self._last: int | None = None

    def end_now(self) -> None:
        """Read nothing that is added after the current snapshot."""
        self._last = self._newest()

    def next(self, start: Position | None) -> Position | None:
        """Return where the next batch ends; the start if there is nothing to read.

        A batch reads what a single snapshot adds, or a part of that. Compactions change no rows, so
        nothing of them is read.

        Raises:
            SnapshotsGoneError: A snapshot that is needed was dropped.
            RemovedFilesError: Files were removed, and options say to fail.
        """
        newest = self._last or self._newest()
        if newest is None:
            return start
        position = start or self._first(newest)
        followers: list[int] | None = None
        compactions: set[int] = set()
        while True:
            if position.files is not None:
                end = self._within_limits(position)
                if end is not None:
                    return end
                position = replace(position, files=None)
            if position.snapshot_id >= newest:
                return position
            if followers is None:
                followers = self._followers(position.snapshot_id, newest)
                compactions = self._compactions(position.snapshot_id)
            follower = followers.pop(0)
            if follower in compactions:
                position = Position(follower, follower)
            else:
                position = Position(follower, position.snapshot_id, 0)

    def _first(self, newest: int) -> Position:
        starting = self._options.starting_snapshot
        if starting is None:
            return Position(newest, 0, 0)
        snapshot_id = newest if starting == "latest" else starting
        return Position(snapshot_id, snapshot_id)

    def _newest(self) -> int | None:
        current = self._client.table(self._table).current_snapshot
        return None if current is None else current.snapshot_id

    def _within_limits(self, position: Position) -> Position | None:
        """Return the end of the next batch of a snapshot's files; None if all were read."""
        first = position.files or 0
        files = self._client.added_files(
            self._table,
            position.snapshot_id,
            since=position.since,
            first=first,
            max_files=self._options.max_files,
            max_bytes=self._options.max_bytes,
        )
        if files.removed_file_count and self._options.removed_files == "fail":
            raise RemovedFilesError(self._table, position.snapshot_id, files.removed_file_count)
        if files.end == first:
            return None
        return replace(position, files=None if files.end == files.file_count else files.end)

    def _followers(self, snapshot_id: int, newest: int) -> list[int]:
        snapshot_ids = []
        for one in self._client.snapshots(self._table):
            if one.snapshot_id <= newest:
                snapshot_ids.append(one.snapshot_id)
            if one.snapshot_id <= snapshot_id:
                break
        if snapshot_ids[::-1] != list(range(snapshot_id, newest + 1)):
            raise SnapshotsGoneError(self._table, snapshot_id)
        return snapshot_ids[-2::-1]

    def _compactions(self, since: int) -> set[int]:
        """Return the snapshots after one that only compactions made."""
        # Writes come in the order in which they began, not in that in which they were published.
        return {
            one.snapshot_id
            for one in self._client.writes(self._table)
            if one.kind == "compaction" and one.snapshot_id is not None and one.snapshot_id > since
        }
