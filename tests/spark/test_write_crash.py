"""A Spark driver is killed in the middle of `client.write`; the next run finishes its commit."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

import windrow
from tests.support.faults.readers import listed_ids
from tests.support.faults.writers import ROOT
from tests.support.servers.coordinators import running
from tests.support.tables import hive
from windrow_service.settings import Settings
from windrow_tables.commits import recover

pytestmark = pytest.mark.spark


@pytest.mark.nightly
def test_a_spark_driver_that_is_killed_while_it_commits_loses_no_row(tmp_path: Path) -> None:
    location = hive.write_events(tmp_path / "events")
    settings = Settings(state_dir=tmp_path / "state", allowed_locations=(str(tmp_path),))
    with running(settings) as url, windrow.connect(url) as client:
        client.register_table("events", str(location))
        client.refresh("events")

        command = [sys.executable, "-m", "tests.programs.crashing_driver", url, "exchanged"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=300, check=False)
        assert done.returncode == -signal.SIGKILL, done.stderr.decode()[-5_000:]
        (recovered,) = recover(client, "events")

        assert recovered.outcome == "published"
        new = {f"ds=2026-11-0{3 + rest}": range(100 + rest, 130, 3) for rest in range(3)}
        old = {f"ds={day}": range(20 * at, 20 * at + 20) for at, day in enumerate(hive.DAYS)}
        assert listed_ids(location) == {
            folder: sorted([*old.get(folder, []), *new.get(folder, [])]) for folder in {*old, *new}
        }
        assert not (location / "_windrow").exists()
        assert not client.refresh("events", full=True).changed
        report = client.write_record("events", recovered.write_id).report
        assert report is not None
        assert (report.rows, report.scheme) == (30, "exact")
