"""The agent of a worker: whatever fails around it, plans follow the contents of its cache."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

import windrow
from tests.support.faults.proxies import proxy
from tests.support.processes.forks import Forked, fork_module
from tests.support.servers.coordinators import coordinator_process
from tests.support.servers.redis import RedisProcess, redis_process
from tests.support.tables import hive
from windrow_core.models import Plan
from windrow_tables.host_cache.cache import FileKey
from windrow_tables.host_cache.opening import open_cache

HOST = "127.0.0.9"
TABLE = "events"
TTL_SECONDS = 3
_TIMEOUT_S = 60.0


@dataclass
class Agent:
    """A running `windrow worker run`."""

    folder: Path
    process: Forked
    log: Path

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(_TIMEOUT_S)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@contextmanager
def agent(url: str, folder: Path) -> Iterator[Agent]:
    log = folder.with_name(f"{folder.name}.log")
    options = ["--cache-dir", str(folder), "--host", HOST, "--ttl", str(TTL_SECONDS)]
    command = ["worker", "run", "--url", url, *options, "--capacity", "64MB"]
    process = fork_module("windrow_cli", *command, output=log)
    running = Agent(folder, process, log)
    try:
        yield running
    finally:
        running.kill()


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return hive.write_events(tmp_path / "tables" / "events")


@contextmanager
def coordinator(tmp_path: Path, **environment: str) -> Iterator[windrow.Client]:
    """A coordinator on which every file of the table is cacheable."""
    with (
        coordinator_process(tmp_path / "state", tmp_path / "tables", **environment) as process,
        windrow.connect(process.url) as client,
    ):
        client.register_table(TABLE, str(tmp_path / "tables" / "events"))
        client.refresh(TABLE)
        client.cache_table(TABLE, "ds >= '2026-01-01'")
        yield client


def url_of(client: windrow.Client) -> str:
    return client._transport.url


def port_of(client: windrow.Client) -> int:
    return int(url_of(client).rpartition(":")[2])


def until(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + _TIMEOUT_S
    while not holds():
        assert time.monotonic() < deadline, "the condition did not hold in time"
        time.sleep(0.1)


def plan(client: windrow.Client) -> Plan:
    return client.plan(TABLE).info


def cached_files(client: windrow.Client) -> int:
    return plan(client).summary.cached_files


def is_alive(client: windrow.Client) -> bool:
    return [worker.host for worker in client.workers()] == [HOST]


def keep_all(client: windrow.Client, folder: Path, table: Path) -> int:
    """Put every file of the table into a cache as tasks do; return their number."""
    cache = open_cache(str(folder))
    splits = client.plan(TABLE).groups["splits"].combine_chunks().flatten().to_pylist()
    for split in splits:
        key = FileKey(TABLE, str(table), split["size_bytes"], split["mtime_ns"], split["path"])
        cache.keep(key.text(), (table / split["path"]).read_bytes())
    return len(splits)


def test_plans_follow_the_cache_while_its_agent_comes_and_goes(tmp_path: Path, table: Path) -> None:
    folder = tmp_path / "cache"
    with coordinator(tmp_path) as client, ExitStack() as agents:
        first = agents.enter_context(agent(url_of(client), folder))
        until(lambda: is_alive(client))
        assert cached_files(client) == 0

        count = keep_all(client, folder, table)
        until(lambda: cached_files(client) == count)

        cache = open_cache(str(folder))
        (key,) = cache.connection.execute("SELECT key FROM Entries LIMIT 1").fetchone()
        cache.drop(key)
        until(lambda: cached_files(client) == count - 1)

        # A killed agent is silent, and its worker is forgotten when the TTL has passed.
        first.kill()
        until(lambda: not is_alive(client))
        assert cached_files(client) == 0

        # A file removed while no agent ran does not count as held.
        (key,) = cache.connection.execute("SELECT key FROM Entries LIMIT 1").fetchone()
        cache.drop(key)
        second = agents.enter_context(agent(url_of(client), folder))
        until(lambda: cached_files(client) == count - 2)

        # A stopped agent signs off at once.
        assert second.stop() == 0
        assert not is_alive(client)
        assert "Traceback" not in second.log.read_text()


def test_an_agent_restarted_after_a_kill_reports_current_contents(
    tmp_path: Path, table: Path
) -> None:
    folder = tmp_path / "cache"
    with coordinator(tmp_path) as client, ExitStack() as agents:
        first = agents.enter_context(agent(url_of(client), folder))
        until(lambda: is_alive(client))
        count = keep_all(client, folder, table)
        until(lambda: cached_files(client) == count)

        first.kill()
        cache = open_cache(str(folder))
        for (key,) in cache.connection.execute("SELECT key FROM Entries LIMIT 2").fetchall():
            cache.drop(key)
        cache.connection.execute("DELETE FROM Changes")
        agents.enter_context(agent(url_of(client), folder))

        until(lambda: cached_files(client) == count - 2)


def test_an_agent_reports_everything_again_after_a_coordinator_outage(
    tmp_path: Path, table: Path
) -> None:
    folder = tmp_path / "cache"
    with proxy(("127.0.0.1", 1)) as way, ExitStack() as agents:
        with coordinator(tmp_path) as client:
            way.target = ("127.0.0.1", port_of(client))
            running = agents.enter_context(agent(f"http://127.0.0.1:{way.port}", folder))
            until(lambda: is_alive(client))
            count = keep_all(client, folder, table)
            until(lambda: cached_files(client) == count)

        # The cache map was in the memory of that coordinator, so it is lost.
        until(lambda: "trying again" in running.log.read_text())
        with coordinator(tmp_path) as client:
            way.target = ("127.0.0.1", port_of(client))
            until(lambda: cached_files(client) == count)

        assert running.process.poll() is None


def test_an_agent_reports_everything_again_after_redis_was_flushed(
    tmp_path: Path, table: Path
) -> None:
    folder = tmp_path / "cache"
    with ExitStack() as stack:
        redis: RedisProcess = stack.enter_context(redis_process(tmp_path))
        client = stack.enter_context(coordinator(tmp_path, WINDROW_REDIS_URL=redis.url))
        stack.enter_context(agent(url_of(client), folder))
        until(lambda: is_alive(client))
        count = keep_all(client, folder, table)
        until(lambda: cached_files(client) == count)

        (before,) = client.workers()
        redis.flush()

        until(lambda: cached_files(client) == count)
        (after,) = client.workers()
        assert after.session != before.session


def test_files_of_unknown_tables_do_not_stop_reports_of_others(tmp_path: Path, table: Path) -> None:
    folder = tmp_path / "cache"
    with coordinator(tmp_path) as client, agent(url_of(client), folder) as running:
        until(lambda: is_alive(client))
        open_cache(str(folder)).keep(FileKey("another", "/another", 1, 1, "a").text(), b"a")

        count = keep_all(client, folder, table)

        until(lambda: cached_files(client) == count)
        assert "not reporting files of table another" in running.log.read_text()


def test_a_damaged_cache_is_replaced(tmp_path: Path, table: Path) -> None:
    folder = tmp_path / "cache"
    with coordinator(tmp_path) as client, agent(url_of(client), folder):
        until(lambda: is_alive(client))
        count = keep_all(client, folder, table)
        until(lambda: cached_files(client) == count)

        made = (folder / "worker.json").stat().st_ino
        open_cache(str(folder)).close()
        (folder / "files" / "entries.db").write_bytes(b"no database" * 10_000)
        (folder / "damaged").touch()

        until(lambda: (folder / "worker.json").stat().st_ino != made)
        until(lambda: cached_files(client) == 0)
        assert keep_all(client, folder, table) == count
        until(lambda: cached_files(client) == count)


def test_a_folder_has_one_agent(tmp_path: Path, table: Path) -> None:
    folder = tmp_path / "cache"
    with coordinator(tmp_path) as client, agent(url_of(client), folder) as first:
        until(lambda: is_alive(client))

        with agent(url_of(client), folder) as second:
            assert second.process.wait(_TIMEOUT_S) == 1

        assert "another agent manages cache folder" in second.log.read_text()
        assert first.process.poll() is None


@pytest.mark.parametrize("mode", [0o770, 0o707])
def test_a_folder_that_others_can_write_to_is_refused(tmp_path: Path, mode: int) -> None:
    folder = tmp_path / "cache"
    folder.mkdir()
    folder.chmod(mode)

    with agent("http://127.0.0.1:1", folder) as refused:
        assert refused.process.wait(_TIMEOUT_S) == 1

    assert "chmod 700" in refused.log.read_text()
    assert os.listdir(folder) == []


def test_an_agent_without_a_coordinator_waits_for_one(tmp_path: Path) -> None:
    folder = tmp_path / "cache"

    with agent("http://127.0.0.1:1", folder) as waiting:
        until(lambda: "trying again" in waiting.log.read_text())
        assert waiting.process.poll() is None
        assert open_cache(str(folder)).folder.host == HOST

        waiting.process.send_signal(signal.SIGINT)
        assert waiting.process.wait(_TIMEOUT_S) == 0
