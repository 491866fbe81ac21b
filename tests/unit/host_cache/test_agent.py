"""An agent's reports to a coordinator that accepts only some of them, or none."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

import windrow
from tests.support.servers.coordinators import running
from tests.support.spark.host_caches import cache_in
from tests.support.tables import hive
from windrow_calls.errors import NotAuthenticatedError
from windrow_service.settings import Settings
from windrow_service.wiring import adapters
from windrow_tables.host_cache.agent import Agent, AgentError
from windrow_tables.host_cache.cache import FileKey
from windrow_tables.host_cache.folders import UnusableFolderError
from windrow_tables.host_cache.opening import open_cache

TABLE = "events"
_TIMEOUT_S = 60.0


def until(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + _TIMEOUT_S
    while not holds():
        assert time.monotonic() < deadline, "the condition did not hold in time"
        time.sleep(0.05)


def agent_of(client: windrow.Client, folder: Path) -> Agent:
    return Agent(
        client, str(folder), host="here", capacity_bytes=2**26, worker_id="w", ttl_seconds=30
    )


@contextmanager
def at_work(agent: Agent) -> Iterator[None]:
    stopped = threading.Event()
    thread = threading.Thread(target=agent.run, args=(stopped,))
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return hive.write_events(tmp_path / "tables" / "events", files_per_day=3)


@pytest.mark.slow
def test_a_full_coordinator_still_learns_what_fits_and_what_is_removed(
    tmp_path: Path,
    table: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    small = partial(adapters.MemoryCacheMap, max_files=4)
    monkeypatch.setattr(adapters, "MemoryCacheMap", small)
    settings = Settings(state_dir=tmp_path / "state", allowed_locations=(str(tmp_path),))
    with running(settings) as url, windrow.connect(url, attempts=1) as client:
        client.register_table(TABLE, str(table))
        client.refresh(TABLE)
        client.cache_table(TABLE, "ds >= '2026-01-01'")
        splits = client.plan(TABLE).groups["splits"].combine_chunks().flatten().to_pylist()
        keys = [
            FileKey(TABLE, str(table), split["size_bytes"], split["mtime_ns"], split["path"]).text()
            for split in splits
        ]

        def cached() -> int:
            return client.plan(TABLE).info.summary.cached_files

        with at_work(agent_of(client, tmp_path / "cache")):
            until(lambda: list(client.workers()))
            cache = open_cache(str(tmp_path / "cache"))
            for key in keys[:4]:
                cache.keep(key, b"content")
            until(lambda: cached() == 4)

            cache.keep(keys[4], b"content")
            until(lambda: "does not accept more cached files" in caplog.text)
            assert cached() == 4

            # No more files are accepted, but removals still are.
            cache.drop(keys[0])
            until(lambda: cached() == 3)
        assert list(client.workers()) == []


def test_an_agent_without_permission_ends_with_the_reason(tmp_path: Path) -> None:
    settings = Settings(
        state_dir=tmp_path / "state", allowed_locations=(str(tmp_path),), require_tokens=True
    )
    with running(settings) as url, windrow.connect(url, attempts=1) as client:
        agent = agent_of(client, tmp_path / "cache")

        with pytest.raises(NotAuthenticatedError):
            agent.run(threading.Event())


def test_a_folder_with_other_contents_is_left_unchanged(tmp_path: Path) -> None:
    folder = tmp_path / "photos"
    folder.mkdir()
    (folder / "files").mkdir()
    (folder / "files" / "holiday.val").write_bytes(b"a picture")

    with (
        windrow.connect("http://127.0.0.1:1", check=False) as client,
        pytest.raises(AgentError, match="something other than a cache"),
    ):
        agent_of(client, folder)

    assert [path.name for path in folder.rglob("*")] == ["files", "holiday.val"]


def test_an_agent_makes_a_cache_beside_the_files_of_an_earlier_version(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cache_in(tmp_path / "cache").close()
    for file in (tmp_path / "cache" / "files").iterdir():
        file.unlink()
    old = tmp_path / "cache" / "files" / "0a" / "entry.val"
    old.parent.mkdir()
    old.write_bytes(b"of a layout that this version cannot read")
    about = tmp_path / "cache" / "worker.json"
    about.write_text(about.read_text().replace('"layout": 2', '"layout": 1'))
    with pytest.raises(UnusableFolderError, match="another version"):
        open_cache(str(tmp_path / "cache"))

    with windrow.connect("http://127.0.0.1:1", check=False) as client:
        agent_of(client, tmp_path / "cache")

    assert "earlier version" in caplog.text
    assert old.exists()
    open_cache(str(tmp_path / "cache")).keep("[]", b"content")
    assert open_cache(str(tmp_path / "cache")).get("[]") == b"content"


def test_an_agent_with_a_damaged_cache_starts_with_an_empty_one(tmp_path: Path) -> None:
    cache = cache_in(tmp_path / "cache")
    cache.keep("[]", b"content")
    cache.close()
    (tmp_path / "cache" / "files" / "entries.db").write_bytes(b"no database" * 1000)

    with windrow.connect("http://127.0.0.1:1", check=False) as client:
        agent_of(client, tmp_path / "cache")

    assert open_cache(str(tmp_path / "cache")).get("[]") is None
    assert not (tmp_path / "cache" / "damaged").exists()
