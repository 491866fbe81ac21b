"""Recovery of dead writes: their commits are finished, everything else is undone."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, TypeAlias

from windrow_calls.errors import (
    NotAllowedError,
    NotFoundError,
    WriteInProgressError,
    WriteLostError,
)
from windrow_core.files.access import why_unwritable
from windrow_core.files.roots.proofs import NotOursError
from windrow_core.files.roots.stores import StoreRoot
from windrow_core.files.schemes import is_remote
from windrow_core.models import TableInfo, WriteRecord
from windrow_tables.commits.calls import CommitCalls
from windrow_tables.commits.committing import Commit
from windrow_tables.commits.errors import (
    CommitInterruptedError,
    UnfitLocationError,
    UnknownCommitError,
)
from windrow_tables.commits.intents import Intent
from windrow_tables.commits.leases import Lease
from windrow_tables.commits.locations import (
    owner_of,
    staging_folder,
    staging_folders_in,
    writable_location,
)
from windrow_tables.commits.staging import Staging
from windrow_tables.commits.staging_folders import STAGING_ROOT

# `published`: the commit was finished. `undone`: the staged files were removed. `tidied`: at most
# a leftover folder was removed. `left`: nothing was done; the driver may be alive, for example.
RecoveryOutcome: TypeAlias = Literal["published", "undone", "tidied", "left"]

_LEASE_S = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """The outcome of recovering one write.

    Attributes:
        write_id: The write.
        outcome: What was done.
        reason: Why.
    """

    write_id: str
    outcome: RecoveryOutcome
    reason: str


def recover(client: CommitCalls, table: str | TableInfo, *, force: bool = False) -> list[Recovered]:
    """Finish the commits of dead writes, and undo everything else that they have left.

    A write is dead if nobody holds the lock of its staging folder, and its lease has run out or
    the lock was made on this machine. On HDFS and S3, where there are no locks, the lease
    decides.

    Args:
        client: The coordinator's client.
        table: The table's name, or the table as it has just been read.
        force: Also finish commits that the coordinator does not know, remove the staging folders
            of unknown writes whatever their age, and give up commits whose folder is gone.

    Raises:
        UnfitLocationError: The table cannot be written where it lies, or what dead writes have left
            there cannot be listed.
        UnknownCommitError: The coordinator does not know an interrupted commit.
        CommitInterruptedError: An interrupted commit cannot be finished.
        ProblemError: The coordinator refuses.
    """
    info = table if isinstance(table, TableInfo) else client.table(table)
    location = writable_location(info)
    waiting = {record.write_id for record in client.writes(info.name, open_only=True)}
    try:
        waiting |= {staging.write_id for staging in staging_folders_in(location)}
    except OSError as error:
        raise UnfitLocationError(info.name, location, why_unwritable(error)) from error
    recovery = _Recovery(client, info, force)
    outcomes = [
        recovery.recover(staging_folder(location, write_id)) for write_id in sorted(waiting)
    ]
    if is_remote(location):
        # A driver may have died after it had removed its folder, and before those above.
        with suppress(OSError):
            StoreRoot(location).remove_empty(STAGING_ROOT)
    return outcomes


@dataclass(frozen=True, slots=True)
class _Recovery:
    client: CommitCalls
    table: TableInfo
    force: bool

    def recover(self, staging: Staging) -> Recovered:
        lock = None
        try:
            try:
                lock = staging.take()
            except FileNotFoundError:
                return self._without_lock(staging)
            if lock is None:
                return _left(staging, "its driver is running")
            return self._recover_locked(staging, same_machine=lock.same_machine)
        except OSError as error:
            return _left(staging, f"the system does not allow it: {why_unwritable(error)}")
        finally:
            if lock is not None:
                lock.release()

    def _recover_locked(self, staging: Staging, *, same_machine: bool) -> Recovered:
        """Recover a write whose lock this process holds."""
        record = self._record(staging)
        if record is None:
            return self._unknown(staging, same_machine=same_machine)
        if record.state in ("published", "undone"):
            return _tidied(staging)
        if record.alive and not same_machine:
            return _left(staging, f"its lease runs until {record.expires_at:%H:%M:%S} UTC")
        lease = self._lease(staging, record)
        try:
            lease.tell(record.state, takes_over=True)
            intent = staging.recorded()
            if intent is not None and record.state == "staging":
                # The record is from a backup that is older than the intent, which is binding.
                lease.tell("committing")
        except (WriteLostError, WriteInProgressError) as error:
            return _left(staging, str(error))
        if intent is None:
            lease.tell("undone")
            staging.remove()
            return _undone(staging)
        return self._finish(staging, intent, lease)

    def _finish(self, staging: Staging, intent: Intent, lease: Lease) -> Recovered:
        lease.keep()
        try:
            # Read the table only now, since a commit that has just ended may have changed it.
            table = self.client.table(self.table.name)
            Commit(self.client, table, staging, intent, lease).finish()
        finally:
            lease.end()
        reason = "its driver died while committing"
        return Recovered(write_id=staging.write_id, outcome="published", reason=reason)

    def _unknown(self, staging: Staging, *, same_machine: bool) -> Recovered:
        intent = staging.recorded()
        if intent is not None and intent.table != self.table.name:
            other = self._of_table(intent.table)
            if other is not None and other._record(staging) is not None:
                return other._recover_locked(staging, same_machine=same_machine)
        if intent is not None:
            if not self.force:
                raise UnknownCommitError(self.table.name, staging.path)
            lease = Lease(
                self.client,
                self.table.name,
                staging.write_id,
                intent.kind,
                intent.mode,
                _LEASE_S,
                intent.batch,
            )
            lease.tell("staging")
            lease.tell("committing")
            return self._finish(staging, intent, lease)
        if not self.force:
            try:
                staging.require_ours(owner_of(self.table))
            except FileNotFoundError:
                pass
            except NotOursError as error:
                return _left(staging, f"the coordinator does not know it, and {error.why}")
        staging.remove()
        reason = "the coordinator did not know it"
        return Recovered(write_id=staging.write_id, outcome="tidied", reason=reason)

    def _without_lock(self, staging: Staging) -> Recovered:
        """Recover a write whose folder is being made or removed, or is gone."""
        record = self._record(staging)
        if record is not None and record.state in ("published", "undone"):
            return _tidied(staging)
        if staging.exists():
            if record is None:
                return self._unknown(staging, same_machine=False)
            try:
                lock = staging.claim()
            except (FileExistsError, FileNotFoundError):
                return _left(staging, "another process is recovering it")
            try:
                return self._recover_locked(staging, same_machine=False)
            finally:
                lock.release()
        if record is None:
            return _tidied(staging)
        if record.alive:
            return _left(staging, f"its lease runs until {record.expires_at:%H:%M:%S} UTC")
        if record.state == "committing" and not self.force:
            raise CommitInterruptedError(
                self.table.name,
                staging.write_id,
                0,
                0,
                f"its staging folder {staging.path!r} is gone: if it cannot be restored, "
                "--force gives up the commit, and a refresh finds the files that were moved in",
            )
        lease = self._lease(staging, record)
        lease.tell("undone", takes_over=True)
        return _undone(staging)

    def _of_table(self, name: str) -> _Recovery | None:
        """Return the recovery of another table over the same folder, if there is such a table."""
        try:
            return _Recovery(self.client, self.client.table(name), self.force)
        except (NotFoundError, NotAllowedError):
            return None

    def _record(self, staging: Staging) -> WriteRecord | None:
        try:
            return self.client.write_record(self.table.name, staging.write_id)
        except NotFoundError:
            return None

    def _lease(self, staging: Staging, record: WriteRecord) -> Lease:
        return Lease(
            self.client,
            self.table.name,
            staging.write_id,
            record.kind,
            record.mode,
            _LEASE_S,
            record.batch,
        )


def _left(staging: Staging, reason: str) -> Recovered:
    return Recovered(write_id=staging.write_id, outcome="left", reason=reason)


def _tidied(staging: Staging) -> Recovered:
    staging.remove()
    return Recovered(write_id=staging.write_id, outcome="tidied", reason="it had ended")


def _undone(staging: Staging) -> Recovered:
    reason = "its driver died before committing"
    return Recovered(write_id=staging.write_id, outcome="undone", reason=reason)
