"""The end of a commit, once its intent is recorded: move in, publish, tidy up."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from windrow_calls.errors import (
    InvalidRequestError,
    NotFoundError,
    ProblemError,
    WindrowError,
    WriteInProgressError,
    WriteLostError,
)
from windrow_core.files.access import why_unwritable
from windrow_core.files.errors import InventoryError
from windrow_core.files.schemes import is_object
from windrow_core.models import PublishedSnapshot, TableInfo, WriteReport
from windrow_tables.commits.calls import CommitCalls
from windrow_tables.commits.errors import CommitInterruptedError, UnpublishedError
from windrow_tables.commits.intents import Intent
from windrow_tables.commits.inventories import FileInventory, list_files, stat_files, take_inventory
from windrow_tables.commits.leases import Lease
from windrow_tables.commits.staging import Staging
from windrow_tables.commits.table_layout import (
    declared_names,
    in_types_of,
    partition_names,
    with_known_stats,
)

_CONFLICT = 409


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit whose intent is recorded: from here on it is finished, never undone.

    Attributes:
        client: The coordinator's client.
        table: The table, with its current snapshot.
        staging: The write's staging folder.
        intent: The intent recorded in the staging folder.
        lease: Lease of the write, which is in state `committing`.
        began_s: When the commit began, on the monotonic clock; None for an interrupted commit.
    """

    client: CommitCalls
    table: TableInfo
    staging: Staging
    intent: Intent
    lease: Lease
    began_s: float | None = None

    def finish(
        self,
        inventory: FileInventory | None = None,
        on_moved: Callable[[int, int], None] | None = None,
    ) -> PublishedSnapshot | None:
        """Move files in, publish, tidy up; return the snapshot, or None if published before.

        Args:
            inventory: Inventory of the new files, if it is at hand.
            on_moved: See `TableWrite.commit`.
        """
        moving = self.staging.moving(self.intent)
        done = 0

        def count(number: int) -> None:
            nonlocal done
            self.lease.check()
            done = number
            if on_moved is not None:
                on_moved(done, len(self.intent.partitions))

        try:
            # After a pause of any length, another process may have finished or undone the write.
            self.lease.tell("committing")
            moving.move_in(count)
            snapshot, refusal = self._publish(inventory)
            # Before the record ends, as nobody looks into the folder of a write that has ended.
            moving.finish()
            self.lease.tell("published", report=self._report())
        except NotFoundError:
            raise
        except (OSError, WindrowError) as error:
            if isinstance(error, WriteLostError) and self._is_undone():
                raise
            reason = why_unwritable(error) if isinstance(error, OSError) else str(error)
            raise CommitInterruptedError(
                self.table.name, self.intent.write_id, done, len(self.intent.partitions), reason
            ) from error
        self.staging.remove()
        if refusal is not None:
            raise UnpublishedError(self.table.name, self.intent.write_id, str(refusal)) from refusal
        return snapshot

    def _is_undone(self) -> bool:
        """Whether the coordinator is known to have recorded that nothing will be moved."""
        try:
            record = self.client.write_record(self.table.name, self.intent.write_id)
        except WindrowError:
            return False
        return record.state == "undone"

    def _report(self) -> WriteReport:
        report = self.intent.report
        if self.began_s is None:
            return report
        return report.model_copy(update={"commit_seconds": time.monotonic() - self.began_s})

    def _publish(
        self, inventory: FileInventory | None
    ) -> tuple[PublishedSnapshot | None, Exception | None]:
        """Publish; return the snapshot, or the error if the coordinator refuses for good."""
        if self.lease.tell("committing").snapshot_id is not None:
            return None, None
        if not self.intent.whole:
            try:
                return self._publish_change(inventory), None
            except (InventoryError, ProblemError) as error:
                if not _is_refusal(error):
                    raise
        try:
            return self._publish_all(), None
        except (InventoryError, ProblemError) as error:
            if not _is_refusal(error):
                raise
            return None, error

    def _publish_change(self, inventory: FileInventory | None) -> PublishedSnapshot:
        location = self.staging.location
        # A copy of an object has a time, and perhaps an ETag, of its own.
        if inventory is None or is_object(location):
            listing = stat_files(location, self.intent.added())
            if inventory is not None and inventory.files["path"].equals(listing["path"]):
                inventory = inventory.with_states(listing)
            else:
                partitions = partition_names(
                    self.table, self.intent.mode, listing["path"].to_pylist()
                )
                inventory = take_inventory(
                    location, listing, partitions, declared_names(self.table)
                )
        return self.client.publish_delta(
            self.table.name,
            added=with_known_stats(self.table, inventory),
            removed=self.intent.gone(),
            write_id=self.intent.write_id,
        )

    def _publish_all(self) -> PublishedSnapshot:
        location = self.staging.location
        if self.intent.mode == "overwrite":
            listing = stat_files(location, self.intent.added())
        else:
            listing = list_files(location)
            leaving = pc.is_in(listing["path"], pa.array(self.intent.gone(), pa.string()))
            listing = listing.filter(pc.invert(leaving))
        partitions = partition_names(self.table, self.intent.mode, listing["path"].to_pylist())
        inventory = take_inventory(location, listing, partitions, declared_names(self.table))
        files, columns = inventory.files, self.table.definition.columns
        if columns is not None or not len(files):
            # The columns stay as they are.
            files = in_types_of(columns or (), inventory)
        return self.client.publish(self.table.name, files, write_id=self.intent.write_id)


def _is_refusal(error: Exception) -> bool:
    """Return whether the coordinator would refuse the same request again."""
    if isinstance(error, WriteLostError | WriteInProgressError):
        return False
    return isinstance(error, InventoryError | InvalidRequestError) or (
        isinstance(error, ProblemError) and error.problem.status == _CONFLICT
    )
