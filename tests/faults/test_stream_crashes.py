"""A stream's driver is killed at each step of a batch: every row is in the table once."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import windrow
from tests.support.faults.writers import ROOT
from tests.support.laws import is_nightly
from tests.support.servers.coordinators import running
from windrow_core.models import Column
from windrow_service.settings import Settings

TABLE = "sales.events"
ROWS = 30
# The steps at which drivers die, and whether its batches wait for each other.
STEPS = [("batch written", {"max_delay": "1h"})]
AT_NIGHT = [
    ("published", {}),
    ("moved in", {}),
    ("batches written", {}),
    ("batch renamed", {"max_delay": "1h"}),
    ("batches gathered", {}),
    ("staged", {}),
    ("recorded", {}),
    ("exchanged", {}),
    ("noted", {}),
    ("batches removed", {}),
]


def drive(task: dict[str, Any], log: Path) -> int:
    """Run a driver until its Python ends, and return its exit code; its JVM may live on."""
    command = [sys.executable, "-m", "tests.programs.streaming_driver", json.dumps(task)]
    with log.open("wb") as output:
        return subprocess.run(
            command, cwd=ROOT, stdout=output, stderr=output, timeout=300, check=False
        ).returncode


def ids_in(location: Path) -> list[int]:
    files = list(location.glob("hour=*/*.parquet"))
    return sorted(ds.dataset(files).to_table(["id"])["id"].to_pylist())


def folders_of_tasks(location: Path) -> set[Path]:
    """Return the folders that a driver's tasks may be writing to when it dies."""
    # Once a write has an intent, all of its tasks have ended.
    writes = location.glob("_windrow/writes/*")
    return {
        *location.glob("_windrow/streams/*/.*"),
        *(one / "data" for one in writes if not list(one.glob("intent*"))),
    }


def write_late(folders: set[Path]) -> None:
    """Write rows as tasks do that outlive their driver."""
    for folder in folders:
        path = (
            folder / "hour=1" / "late.parquet" if folder.name == "data" else folder / "late.parquet"
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"id": [-1], "at": pa.array([0], pa.timestamp("us", "UTC"))}), path)


# tests/spark/test_stream_disk.py ends streams amid these steps, and test_stream_sink.py repeats batches,
# without a JVM for each end.
@pytest.mark.spark
@pytest.mark.nightly
def test_drivers_that_die_at_any_step_of_a_batch_leave_every_row_once(tmp_path: Path) -> None:
    location = tmp_path / "events"
    location.mkdir()
    columns = [Column(name="id", type="bigint"), Column(name="at", type="timestamp")]
    settings = Settings(state_dir=tmp_path / "state", allowed_locations=(str(tmp_path),))
    with running(settings) as url, windrow.connect(url) as client:
        hours = [{"name": "hour", "type": "int"}]
        client.register_table(TABLE, str(location), columns=columns, partition_columns=hours)
        client.refresh(TABLE)
        task = {
            "url": url,
            "table": TABLE,
            "location": str(location),
            "checkpoint": str(tmp_path / "checkpoint"),
            "rows": ROWS,
        }
        batches, log = 0, tmp_path / "driver.log"
        folders: set[Path] = set()
        for step, options in [*STEPS, *(AT_NIGHT if is_nightly() else [])]:
            batches += 1
            code = drive({**task, "batches": 99, "step": step, "options": options}, log)
            assert code == -signal.SIGKILL, (step, log.read_text()[-5_000:])
            # Those of earlier drivers are gone by now, and come back.
            folders |= folders_of_tasks(location)
            write_late(folders)
        assert folders
        code = drive({**task, "batches": batches + 1}, log)
        assert code == 0, log.read_text()[-5_000:]

        ids = ids_in(location)
        assert ids == list(range(len(ids)))
        assert len(ids) >= ROWS * (batches + 1)
        (stream,) = client.streams(TABLE)
        assert len(ids) == ROWS * (stream.batch_id + 1)
        assert not client.refresh(TABLE, full=True).changed
        # A batch that the end of the query cut short may leave a folder that counts for nothing.
        assert not list(location.glob("_windrow/streams/*/[!.]*"))
