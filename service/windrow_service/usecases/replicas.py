"""The replicas of a coordinator: which of them are there, and on which version."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

# A replica says so often that it is there, and counts as gone after a minute of silence.
NOTE_EVERY_S = 15.0
SILENT_AFTER = timedelta(minutes=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """A coordinator that shares the database.

    Attributes:
        replica_id: Its id, made at its start.
        host: The name of its host, or of its pod.
        process: Number of its process there.
        version: Its version of Windrow.
        started_at: When it started.
        seen_at: When it last said that it is there.
    """

    replica_id: str
    host: str
    process: int
    version: str
    started_at: datetime
    seen_at: datetime


class ReplicaStore(Protocol):
    """Which replicas are there."""

    async def note(self, replica: Replica) -> None:
        """Record that a replica is there, and forget those that are gone."""

    async def leave(self, replica_id: str) -> None:
        """Forget a replica that ends."""

    async def present(self, now: datetime) -> Sequence[Replica]:
        """Return the replicas that are there, by host and process."""
