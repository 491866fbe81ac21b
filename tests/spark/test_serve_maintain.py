"""`windrow serve --maintain`: work is done beside the coordinator, also after a worker was killed."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

import windrow
from tests.support.processes.forks import TIMEOUT_S, Forked, fork_module
from tests.support.servers.coordinators import free_port
from tests.support.tables import hive
from windrow.client import Client
from windrow_calls.errors import WindrowError

pytestmark = [pytest.mark.spark, pytest.mark.slow]

TABLE = "sales.beside"


def wait_until(holds: Callable[[], bool], process: Forked, log: Path) -> None:
    # A session of Spark has to start.
    give_up_at = time.monotonic() + 4 * TIMEOUT_S
    while not holds():
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < give_up_at, log.read_text()
        time.sleep(0.1)


def workers_of(process: Forked) -> list[int]:
    """Return the ids of the processes that do maintenance beside a coordinator."""
    tasks = Path(f"/proc/{process.pid}/task").iterdir()
    children = [pid for task in tasks for pid in (task / "children").read_text().split()]
    return [int(pid) for pid in children if is_worker(int(pid))]


def is_worker(pid: int) -> bool:
    try:
        return b"maintain\0--once" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except FileNotFoundError:
        return False


def has_killed_a_worker(process: Forked, log: Path) -> bool:
    """Kill the worker, if there is one, until the log tells that one died."""
    for pid in workers_of(process):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return "maintenance died" in log.read_text()


def answers(client: Client) -> bool:
    try:
        client.config()
    except WindrowError:
        return False
    return True


# test_maintain_job.py kills a worker of its own every day; tests/unit/cli/test_maintaining.py restarts.
@pytest.mark.nightly
def test_work_is_done_beside_the_coordinator_until_it_stops(tmp_path: Path) -> None:
    location = hive.write_events(tmp_path / "events", files_per_day=4)
    log, port = tmp_path / "log", free_port()
    process = fork_module(
        *("windrow_cli", "serve", "--maintain", "--port", str(port)),
        *("--state-dir", str(tmp_path / "state"), "--allow", str(tmp_path)),
        output=log,
        environment=os.environ | {"WINDROW_MAINTENANCE__EVERY": "PT1S"},
    )
    try:
        with windrow.connect(f"http://127.0.0.1:{port}", check=False, attempts=1) as client:
            wait_until(lambda: answers(client), process, log)
            # The first worker has nothing to do, and does not get to know it.
            wait_until(lambda: has_killed_a_worker(process, log), process, log)
            client.register_table(TABLE, str(location))
            client.refresh(TABLE)
            fields = {"min_age_seconds": 0, "min_gain": 0.0, "reads_per_day": 1_000.0}
            client.set_policy(TABLE, **fields)
            wait_until(lambda: len(hive.data_files(location)) == 3, process, log)
            wait_until(
                lambda: "done" in [one.state for one in client.receipts(TABLE)], process, log
            )
            wait_until(lambda: bool(workers_of(process)), process, log)
        workers = workers_of(process)
        process.send_signal(signal.SIGTERM)
        process.wait()
    finally:
        process.kill()

    assert "12 files" in log.read_text()
    assert not any(map(is_worker, workers))
