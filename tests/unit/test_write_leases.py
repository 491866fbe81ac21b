"""The states that a write's lease reports to the coordinator, and their order."""

from __future__ import annotations

import threading
from typing import cast

from windrow_core.models import WriteRecord, WriteUpdate
from windrow_tables.commits.calls import CommitCalls
from windrow_tables.commits.leases import Lease

_LONG_S = 30


class _Slow:
    """Records the reported states; the first report of a commit takes up to a second."""

    def __init__(self) -> None:
        self.states: list[str] = []
        self.renewing = threading.Event()

    def put_write(self, table: str, write_id: str, update: WriteUpdate, /) -> WriteRecord | None:
        self.states.append(update.state)
        if self.states == ["committing"]:
            # Long enough for the first renewal to become due and to wait for its turn.
            self.renewing.wait(1.0)
        elif len(self.states) == 2:
            self.renewing.set()
        return None


def test_a_renewal_that_waited_for_its_turn_reports_the_current_state() -> None:
    coordinator = _Slow()
    lease = Lease(cast("CommitCalls", coordinator), "events", "w", "write", "append", 1)

    lease.keep()
    lease.tell("committing")

    assert coordinator.renewing.wait(_LONG_S)
    lease.end()
    assert set(coordinator.states) == {"committing"}
