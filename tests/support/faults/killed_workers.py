"""Workers of maintenance that die amid the removal of old partitions."""

from __future__ import annotations

import windrow
from tests.support.faults.writers import at_step, die
from windrow_jobs.maintain import maintain


def drop_and_die(url: str, table: str, step: str, lease_seconds: int) -> None:
    """Do the work on a table that is due, and die at a step of its commit.

    Args:
        url: URL of the coordinator.
        table: The table.
        step: One of `STEPS`.
        lease_seconds: Lease of the work.
    """
    at_step(step, 1, die)
    with windrow.connect(url) as client:
        maintain(_no_spark, client, pattern=table, lease_seconds=lease_seconds)


def _no_spark() -> None:
    raise AssertionError("Spark was started")
