"""Whether partitions are quiet: a writer that is still at one would be in the way, and make more."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping

from windrow_core.cards import seconds_text
from windrow_core.files.listing import is_hidden
from windrow_core.files.status import FileStatus


def why_busy(
    files: Mapping[str, FileStatus], quiet_seconds: float, own: Collection[str]
) -> str | None:
    """Return why a folder has to wait, judging by its files as they are now; None if it has not to.

    Args:
        files: All files directly in it.
        quiet_seconds: How long nobody may have written to it.
        own: Texts in the names of files that this piece of work has written itself.
    """
    moments = [
        status.mtime_ns or 0
        for name, status in files.items()
        if not is_hidden(name) and not any(text in name for text in own)
    ]
    age = time.time() - max(moments, default=0) / 1e9
    if age >= quiet_seconds:
        return None
    return (
        f"it was written to {seconds_text(max(age, 0.0))} ago, and its policy asks for "
        f"{seconds_text(quiet_seconds)} without a write"
    )
