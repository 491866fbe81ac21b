"""The end of a commit, once its intent is recorded: move in, publish, tidy up."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from windrow.commits.calls import CommitCalls
from windrow.commits.errors import CommitInterruptedError, UnpublishedError
from windrow.commits.intents import Intent
from windrow.commits.inventories import LocalInventory, list_local, stat_local, take_local
from windrow.commits.leases import Lease
from windrow.commits.moving import Moving
from windrow.commits.shapes import partition_names, with_known_stats
from windrow.commits.staging import Staging
from windrow.errors import (
    InvalidRequestError,
    NotFoundError,
    ProblemError,
    WindrowError,
    WriteInProgressError,
    WriteLostError,
)
from windrow.files.errors import InventoryError
from windrow.models import PublishedSnapshot, TableInfo, WriteReport

_CONFLICT = 409


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit whose intent is recorded: from here on it is finished, never undone.

    Attributes:
        client: Of the coordinator.
        table: The table, with its current snapshot.
        staging: The write's staging folder.
        intent: Recorded there.
        lease: Of the write, which is in state `committing`.
        began_s: When the commit began, on the monotonic clock; None of one that was interrupted.
    """

    client: CommitCalls
    table: TableInfo
    staging: Staging
    intent: Intent
    lease: Lease
    began_s: float | None = None

    def finish(
        self,
        added: LocalInventory | None = None,
        on_moved: Callable[[int, int], None] | None = None,
    ) -> PublishedSnapshot | None:
        """Move in, publish, tidy up; return what was published, None if that was done before.

        Args:
            added: Inventory of the new files, if it is at hand.
            on_moved: See `TableWrite.commit`.

        Raises:
            CommitInterruptedError: It came to a halt, and may be called again.
            UnpublishedError: The coordinator refuses the inventory of what was moved in.
            WriteLostError: Another process has taken the write over.
            NotFoundError: The table has been deleted.
        """
        moving = Moving(self.staging.location, self.staging.path, self.intent)
        done = 0

        def count(moved: int) -> None:
            nonlocal done
            self.lease.check()
            done = moved
            if on_moved is not None:
                on_moved(done, len(self.intent.partitions))

        try:
            moving.move_in(count)
            snapshot, refusal = self._published(added)
            self.lease.tell("published", report=self._report())
            moving.finish()
        except (WriteLostError, NotFoundError):
            raise
        except (OSError, WindrowError) as error:
            raise CommitInterruptedError(
                self.table.name, self.intent.write_id, done, len(self.intent.partitions), str(error)
            ) from error
        self.staging.remove()
        if refusal is not None:
            raise UnpublishedError(self.table.name, self.intent.write_id, str(refusal)) from refusal
        return snapshot

    def _report(self) -> WriteReport:
        report = self.intent.report
        if self.began_s is None:
            return report
        return report.model_copy(update={"commit_seconds": time.monotonic() - self.began_s})

    def _published(
        self, added: LocalInventory | None
    ) -> tuple[PublishedSnapshot | None, Exception | None]:
        """Return the snapshot, or why the coordinator will never accept one."""
        record = self.client.write_record(self.table.name, self.intent.write_id)
        if record.snapshot_id is not None:
            return None, None
        if not self.intent.whole:
            try:
                return self._publish_change(added), None
            except (InventoryError, ProblemError) as error:
                if not _is_refusal(error):
                    raise
        try:
            return self._publish_all(), None
        except (InventoryError, ProblemError) as error:
            if not _is_refusal(error):
                raise
            return None, error

    def _publish_change(self, added: LocalInventory | None) -> PublishedSnapshot:
        if added is None:
            paths = self.intent.added()
            listed = stat_local(self.staging.location, paths)
            partitions = partition_names(self.table, self.intent.mode, paths)
            added = take_local(self.staging.location, listed, partitions)
        return self.client.publish_delta(
            self.table.name,
            added=with_known_stats(self.table, added),
            removed=self.intent.gone(),
            write_id=self.intent.write_id,
        )

    def _publish_all(self) -> PublishedSnapshot:
        location = self.staging.location
        if self.intent.mode == "overwrite":
            listed = stat_local(location, self.intent.added())
        else:
            listed = list_local(location)
        partitions = partition_names(self.table, self.intent.mode, listed["path"].to_pylist())
        files = take_local(location, listed, partitions).files
        if not len(files) or self.table.definition.columns is not None:
            # The columns stay as they are.
            files = files.replace_schema_metadata(None)
        return self.client.publish(self.table.name, files, write_id=self.intent.write_id)


def _is_refusal(error: Exception) -> bool:
    """Tell whether the coordinator would refuse it the next time too."""
    if isinstance(error, WriteLostError | WriteInProgressError):
        return False
    return isinstance(error, InventoryError | InvalidRequestError) or (
        isinstance(error, ProblemError) and error.problem.status == _CONFLICT
    )
