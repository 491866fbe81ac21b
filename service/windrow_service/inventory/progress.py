"""The progress of an inventory, as reported to the caller."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, TypeAlias

from windrow_core.models import RefreshProgress
from windrow_service.inventory.errors import InventoryCancelledError

_REPORT_INTERVAL_S = 0.1


OnProgress: TypeAlias = Callable[[RefreshProgress], None]


class ProgressMeter:
    """Counts, reports to the caller at most ten times a second, and stops on request.

    Args:
        on_progress: Called from whichever thread runs the inventory.
        cancelled: Set by the caller, from any thread, to stop.
    """

    def __init__(
        self,
        on_progress: OnProgress | None = None,
        cancelled: threading.Event | None = None,
    ) -> None:
        self._on_progress = on_progress
        self._cancelled = cancelled
        self._reported_at_s = float("-inf")
        self.progress = RefreshProgress(phase="listing")

    def add(
        self,
        *,
        folders_listed: int = 0,
        folders_unchanged: int = 0,
        files_found: int = 0,
        footers_read: int = 0,
    ) -> None:
        """Add to the counts, and report if the last report is old enough."""
        self.progress = self.progress.model_copy(
            update={
                "folders_listed": self.progress.folders_listed + folders_listed,
                "folders_unchanged": self.progress.folders_unchanged + folders_unchanged,
                "files_found": self.progress.files_found + files_found,
                "footers_read": self.progress.footers_read + footers_read,
            }
        )
        self.check_cancelled()
        if time.monotonic() - self._reported_at_s >= _REPORT_INTERVAL_S:
            self.report()

    def enter(self, **changes: Any) -> None:
        """Set fields of the progress, such as the phase, and report at once."""
        self.progress = self.progress.model_copy(update=changes)
        self.check_cancelled()
        self.report()

    def report(self) -> None:
        """Report now, regardless of the last report."""
        self._reported_at_s = time.monotonic()
        if self._on_progress is not None:
            self._on_progress(self.progress)

    def check_cancelled(self) -> None:
        """Raise if the caller cancelled.

        Raises:
            InventoryCancelledError: The caller cancelled.
        """
        if self._cancelled is not None and self._cancelled.is_set():
            raise InventoryCancelledError
