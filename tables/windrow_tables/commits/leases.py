"""Leases: a thread that tells the coordinator that a write's driver is alive."""

from __future__ import annotations

import os
import socket
import threading
from contextlib import suppress

from windrow_calls.errors import NotFoundError, WindrowError, WriteLostError
from windrow_core.models import (
    StreamBatch,
    WriteKind,
    WriteMode,
    WriteRecord,
    WriteReport,
    WriteState,
    WriteUpdate,
)
from windrow_tables.commits.calls import CommitCalls

# Number of renewals before a lease would run out.
_RENEWALS = 3


class Lease:
    """The claim of this process on a write.

    Args:
        client: The coordinator's client.
        table: The table's name.
        write_id: The write.
        kind: Kind of the write.
        mode: Mode of the write.
        seconds: Time without a renewal after which the coordinator presumes the driver dead.
        batch: The batches of a stream that the write contains.
    """

    def __init__(
        self,
        client: CommitCalls,
        table: str,
        write_id: str,
        kind: WriteKind,
        mode: WriteMode,
        seconds: int,
        batch: StreamBatch | None = None,
    ) -> None:
        self._client = client
        self._table = table
        self._write_id = write_id
        self._kind = kind
        self._mode = mode
        self._seconds = seconds
        self._batch = batch
        self._state: WriteState = "staging"
        self._lost: WindrowError | None = None
        # One message at a time, so that an older one cannot arrive after a newer one.
        self._speaking = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._renew, name="windrow-lease", daemon=True)

    def tell(
        self, state: WriteState, *, report: WriteReport | None = None, takes_over: bool = False
    ) -> WriteRecord:
        """Report the state of the write to the coordinator."""
        with self._speaking:
            return self._tell(state, report, takes_over=takes_over)

    def keep(self) -> None:
        """Renew the lease from now on, until `end`."""
        self._thread.start()

    def renew(self) -> None:
        """Renew the lease at once, if the coordinator answers; `check` then knows if it is lost."""
        with suppress(WindrowError), self._speaking:
            self._tell(self._state)

    def check(self) -> None:
        """Raise an error if the write is known to be lost."""
        if self._lost is not None:
            raise self._lost

    def end(self) -> None:
        """Stop renewing the lease."""
        self._ended.set()

    def _renew(self) -> None:
        while not self._ended.wait(self._seconds / _RENEWALS):
            try:
                with self._speaking:
                    # Only under the lock is it certain which state was reported last.
                    if self._state in ("staging", "committing") and not self._ended.is_set():
                        self._tell(self._state)
            except (WriteLostError, NotFoundError):
                return
            except WindrowError:
                # The coordinator may be back next time; the write belongs to this process until
                # another takes it over.
                continue

    def _tell(
        self, state: WriteState, report: WriteReport | None = None, *, takes_over: bool = False
    ) -> WriteRecord:
        self.check()
        update = WriteUpdate(
            kind=self._kind,
            mode=self._mode,
            state=state,
            host=socket.gethostname(),
            process=os.getpid(),
            lease_seconds=self._seconds,
            takes_over=takes_over,
            report=report,
            batch=self._batch,
        )
        try:
            record = self._client.put_write(self._table, self._write_id, update)
        except (WriteLostError, NotFoundError) as error:
            self._lost = error
            raise
        self._state = state
        return record
