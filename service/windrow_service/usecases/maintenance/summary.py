"""What maintenance did lately, in figures."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from windrow_service.usecases.maintenance.work import WorkRecord


@dataclass(slots=True, kw_only=True)
class Summary:
    """Work that has ended, added up; seconds are those of one core.

    Attributes:
        done: Number of work items that were done.
        gave_up: Number of those that gave way to a writer.
        failed: Number of those that failed.
        files_before: Small files that were rewritten.
        files_after: Files that replace them.
        bytes_before: Bytes that were rewritten.
        core_seconds: What it cost.
        predicted_seconds: What was predicted for that.
        gain_seconds: What a read of each of the tables saves, measured or else predicted.
        measurements: Number of work items whose gain was measured.
        saved_seconds: What all reads are expected to save while the gain lasts.
    """

    done: int = 0
    gave_up: int = 0
    failed: int = 0
    files_before: int = 0
    files_after: int = 0
    bytes_before: int = 0
    core_seconds: float = 0.0
    predicted_seconds: float = 0.0
    gain_seconds: float = 0.0
    measurements: int = 0
    saved_seconds: float = 0.0

    @property
    def items(self) -> int:
        """Number of all work items."""
        return self.done + self.gave_up + self.failed


def summary(records: Iterable[WorkRecord]) -> Summary:
    """Return the figures of the records that have ended."""
    total = Summary()
    for record in records:
        body = record.body
        if record.state == "running" or record.state == "waiting":
            continue
        setattr(total, record.state, getattr(total, record.state) + 1)
        if (outcome := body.outcome) is not None:
            total.files_before += outcome.files_before
            total.files_after += outcome.files_after
            total.bytes_before += outcome.bytes_before
            total.core_seconds += outcome.core_seconds
            total.predicted_seconds += body.prediction.cost_seconds
        if record.state == "done":
            total.saved_seconds += body.prediction.saved_seconds
            total.measurements += body.gain is not None
            of_reads = body.prediction if body.gain is None else body.gain
            total.gain_seconds += of_reads.gain_seconds
    return total
