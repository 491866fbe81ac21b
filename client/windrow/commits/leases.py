"""Leases: a thread that tells the coordinator that a write's driver is alive."""

from __future__ import annotations

import os
import socket
import threading

from windrow.commits.calls import CommitCalls
from windrow.errors import NotFoundError, WindrowError, WriteLostError
from windrow.models import WriteKind, WriteMode, WriteRecord, WriteReport, WriteState, WriteUpdate

# How often a lease is renewed before it would run out.
_RENEWALS = 3


class Lease:
    """The claim of this process on a write.

    Args:
        client: Of the coordinator.
        table: The table's name.
        write_id: The write.
        kind: Of the write.
        mode: Of the write.
        seconds: How long the coordinator presumes the driver alive without a renewal.
    """

    def __init__(
        self,
        client: CommitCalls,
        table: str,
        write_id: str,
        kind: WriteKind,
        mode: WriteMode,
        seconds: int,
    ) -> None:
        self._client = client
        self._table = table
        self._write_id = write_id
        self._kind = kind
        self._mode = mode
        self._seconds = seconds
        self._state: WriteState = "staging"
        self._lost: WindrowError | None = None
        # One message at a time, so that an older one cannot arrive after a newer one.
        self._speaking = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._renew, name="windrow-lease", daemon=True)

    def tell(
        self, state: WriteState, *, report: WriteReport | None = None, takes_over: bool = False
    ) -> WriteRecord:
        """Tell the coordinator how far the write is.

        Raises:
            WriteLostError: The write is over, or in the hands of another process.
            WriteInProgressError: Another write is moving files in.
        """
        with self._speaking:
            return self._tell(state, report, takes_over=takes_over)

    def keep(self) -> None:
        """Renew the lease from now on, until `end`."""
        self._thread.start()

    def check(self) -> None:
        """Make sure that the write has not been lost, as far as is known.

        Raises:
            WriteLostError: It is over, or in the hands of another process.
            NotFoundError: The table or the write has been deleted.
        """
        if self._lost is not None:
            raise self._lost

    def end(self) -> None:
        """Stop renewing it."""
        self._ended.set()

    def _renew(self) -> None:
        while not self._ended.wait(self._seconds / _RENEWALS):
            try:
                with self._speaking:
                    # Only now is it certain which state was told last.
                    if self._state in ("staging", "committing") and not self._ended.is_set():
                        self._tell(self._state)
            except (WriteLostError, NotFoundError) as error:
                self._lost = error
                return
            except WindrowError:
                # The coordinator may be back next time; until another process takes the write over,
                # it belongs to this one.
                continue

    def _tell(
        self, state: WriteState, report: WriteReport | None = None, *, takes_over: bool = False
    ) -> WriteRecord:
        self.check()
        record = self._client.put_write(
            self._table,
            self._write_id,
            WriteUpdate(
                kind=self._kind,
                mode=self._mode,
                state=state,
                host=socket.gethostname(),
                process=os.getpid(),
                lease_seconds=self._seconds,
                takes_over=takes_over,
                report=report,
            ),
        )
        self._state = state
        return record
