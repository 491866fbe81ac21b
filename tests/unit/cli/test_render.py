"""What the command line says of results."""

from __future__ import annotations

from datetime import datetime, timezone

from rich.console import Console

from windrow.cli.render import refresh_outcome
from windrow.models import RefreshProgress, RefreshStatus, SnapshotInfo


def test_a_refresh_says_how_many_files_it_passed_over() -> None:
    now = datetime(2026, 11, 1, tzinfo=timezone.utc)
    status = RefreshStatus(
        refresh_id="r",
        table="sales.events",
        status="done",
        started_at=now,
        seconds=1,
        progress=RefreshProgress(phase="done", files_empty=1_234, files_uncommitted=5),
        changed=False,
        snapshot=SnapshotInfo(
            snapshot_id=1,
            created_at=now,
            file_count=1,
            row_count=1,
            size_bytes=1,
            columns=[],
            partition_columns=[],
            manifest_count=1,
        ),
    )
    console = Console(width=200)

    with console.capture() as said:
        console.print(refresh_outcome(status))

    assert "1,234 files of 0 bytes passed over" in said.get()
    assert "5 files passed over as not committed" in said.get()
