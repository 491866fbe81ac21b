"""`GET /tables/{name}/cache`: the cacheable files, and where they are cached."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.api.problems import problem_of
from tests.support.tables import hive

HOST = "cache-of-figures"


@pytest.fixture
def session(http: httpx.Client) -> Iterator[str]:
    """The session of a live worker."""
    beat = {"host": HOST, "capacity_bytes": 10**12, "used_bytes": 0}
    answer = http.put(f"/workers/{HOST}", json=beat)
    yield answer.raise_for_status().json()["session"]
    http.delete(f"/workers/{HOST}")


def put_rule(http: httpx.Client, table: str, name: str, **fields: Any) -> dict[str, Any]:
    answer = http.put(f"/tables/{table}/cache-rules/{name}", json=fields)
    rule: dict[str, Any] = answer.raise_for_status().json()
    return rule


def cache_of(http: httpx.Client, table: str) -> dict[str, Any]:
    answer = http.get(f"/tables/{table}/cache")
    assert answer.status_code == 200, answer.text
    cache: dict[str, Any] = answer.json()
    return cache


def hold(http: httpx.Client, table: str, session: str, location: Path, *paths: str) -> None:
    files = [
        {"path": path, "size_bytes": of.st_size, "mtime_ns": of.st_mtime_ns}
        for path in paths
        for of in [(location / path).stat()]
    ]
    http.post(
        f"/workers/{HOST}/cached-files",
        json={"table": table, "session": session, "added": files, "replace": True},
    ).raise_for_status()


def figures(cache: dict[str, Any], rule: str) -> tuple[int, int, int, int]:
    (one,) = (one for one in cache["rules"] if one["rule"] == rule)
    return one["file_count"], one["size_bytes"], one["cached_files"], one["cached_bytes"]


def worker_of(cache: dict[str, Any]) -> dict[str, Any]:
    (one,) = (one for one in cache["workers"] if one["host"] == HOST)
    return {name: value for name, value in one.items() if name != "host"}


def test_a_table_without_rules_has_nothing_cacheable(
    http: httpx.Client, events: str, session: str
) -> None:
    cache = cache_of(http, events)

    assert cache == {
        "table": events,
        "snapshot_id": 1,
        "cacheable_files": 0,
        "cacheable_bytes": 0,
        "cached_files": 0,
        "cached_bytes": 0,
        "rules": [],
        "workers": cache["workers"],
        "complete": True,
    }
    assert worker_of(cache) == {"file_count": 0, "size_bytes": 0, "other_files": 0}


def test_files_are_counted_by_rule_and_by_worker_and_once_in_total(
    http: httpx.Client, events: str, location: Path, session: str
) -> None:
    paths = hive.data_files(location)
    sizes = [(location / path).stat().st_size for path in paths]
    rule = put_rule(http, events, "old", filter="ds <= '2026-11-02'")
    put_rule(http, events, "new", filter="ds >= '2026-11-02'")
    put_rule(http, events, "last", filter="ds IS NOT NULL", max_bytes=sum(sizes[3:]))
    put_rule(http, events, "none", filter="ds = '1999-01-01'")
    hold(http, events, session, location, paths[0], paths[2], paths[5])

    cache = cache_of(http, events)

    assert [one["rule"] for one in cache["rules"]] == ["last", "new", "none", "old"]
    assert cache["rules"][-1].items() >= rule.items()
    assert figures(cache, "old") == (4, sum(sizes[:4]), 2, sizes[0] + sizes[2])
    assert figures(cache, "new") == (4, sum(sizes[2:]), 2, sizes[2] + sizes[5])
    assert figures(cache, "last") == (3, sum(sizes[3:]), 1, sizes[5])
    assert figures(cache, "none") == (0, 0, 0, 0)
    assert (cache["cacheable_files"], cache["cacheable_bytes"]) == (6, sum(sizes))
    held = sizes[0] + sizes[2] + sizes[5]
    assert (cache["cached_files"], cache["cached_bytes"]) == (3, held)
    assert worker_of(cache) == {"file_count": 3, "size_bytes": held, "other_files": 0}


def test_cached_files_that_match_no_rule_or_changed_count_as_others(
    http: httpx.Client, events: str, location: Path, session: str
) -> None:
    paths = hive.data_files(location)
    put_rule(http, events, "new", filter="ds >= '2026-11-02'")
    hold(http, events, session, location, paths[0], paths[4], paths[5])
    hive.write_file(location / paths[5], range(500))
    http.post(f"/tables/{events}/refresh", params={"full": "true"}).raise_for_status()

    cache = cache_of(http, events)

    assert (cache["cacheable_files"], cache["cached_files"]) == (4, 1)
    size_bytes = (location / paths[4]).stat().st_size
    assert worker_of(cache) == {"file_count": 1, "size_bytes": size_bytes, "other_files": 2}


def test_figures_need_a_table_that_has_a_snapshot(
    http: httpx.Client, name: str, location: Path
) -> None:
    problem_of(http.get(f"/tables/{name}/cache"), 404, "table-not-found")
    http.put(f"/tables/{name}", json={"location": str(location)}).raise_for_status()
    problem_of(http.get(f"/tables/{name}/cache"), 409, "table-not-refreshed")


def test_a_rule_on_a_column_that_no_longer_exists_marks_nothing(
    http: httpx.Client, events: str, location: Path
) -> None:
    put_rule(http, events, "recent", filter="ds >= '2026-11-02'")
    for path in hive.data_files(location):
        (location / path).rename(location / Path(path).name.replace("part", path[3:13]))
    http.post(f"/tables/{events}/refresh", params={"full": "true"}).raise_for_status()

    cache = cache_of(http, events)

    assert figures(cache, "recent") == (0, 0, 0, 0)
    assert cache["cacheable_files"] == 0
