"""When the waiting batches of a stream make files: a decision on figures alone."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Holding:
    """How long batches may wait to be written together.

    Attributes:
        max_delay_s: Seconds after which the rows of a batch are to be in the table; 0 lets none
            wait.
        min_file_size: Batches wait until their files would have this many bytes on average.
        max_files_per_hour: Batches wait until no more files than this are made in an hour; None is
            no limit.
    """

    max_delay_s: float = 0.0
    min_file_size: int = 0
    max_files_per_hour: int | None = None

    def is_due(
        self, *, age_s: float, write_s: float, size_bytes: int, partitions: int, recent_files: int
    ) -> bool:
        """Return whether the waiting batches make files now.

        Args:
            age_s: Age of the oldest of them.
            write_s: How long a write takes, which is a part of the delay.
            size_bytes: Bytes that all of their rows take.
            partitions: Number of partitions that they write to.
            recent_files: Number of files that the stream has made within the last hour.
        """
        # Not more than half, or writes that take long would be as many as batches.
        if age_s + min(write_s, self.max_delay_s / 2) >= self.max_delay_s:
            return True
        if size_bytes < self.min_file_size * partitions:
            return False
        limit = self.max_files_per_hour
        return limit is None or recent_files + partitions <= limit
