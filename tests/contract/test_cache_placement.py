"""Plans with cache rules and workers: the hosts where cacheable files are read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest

from tests.support.servers.coordinators import PLAIN, running
from tests.support.tables import hive
from windrow_service.settings import Settings

ARROW = {"Accept": "application/vnd.apache.arrow.stream"}
HOSTS = ("cache-1", "cache-2", "cache-3")
BY_WORKER = {"cached_splits": "by_worker"}


class Caches:
    """A table of six files on a coordinator, with its rules and workers."""

    def __init__(self, http: httpx.Client, location: Path) -> None:
        self.http = http
        self.location = location
        self.sessions: dict[str, str] = {}

    def put_rule(self, name: str = "all", **fields: Any) -> None:
        answer = self.http.put(f"/tables/events/cache-rules/{name}", json=fields)
        assert answer.is_success, answer.text

    def beat(self, host: str, capacity_bytes: int = 10**12) -> None:
        beat = {"host": host, "capacity_bytes": capacity_bytes, "used_bytes": 0}
        answer = self.http.put(f"/workers/{host}", json=beat)
        self.sessions[host] = answer.raise_for_status().json()["session"]

    def hold(self, host: str, files: list[dict[str, Any]], **fields: Any) -> None:
        self.http.post(
            f"/workers/{host}/cached-files",
            json={"table": "events", "session": self.sessions[host], "added": files} | fields,
        ).raise_for_status()

    def plan(self, **options: Any) -> dict[str, Any]:
        answer = self.http.post("/plans", json={"table": "events", "options": options})
        plan: dict[str, Any] = answer.raise_for_status().json()
        paths = [split["path"] for group in plan["groups"] for split in group["splits"]]
        assert sorted(paths) == hive.data_files(self.location)
        return plan

    def hold_as_planned(self) -> None:
        for group in self.plan()["groups"]:
            if group["cached_on"] is not None:
                self.hold(group["cached_on"], files_of(group))


@pytest.fixture
def caches(tmp_path: Path) -> Iterator[Caches]:
    location = hive.write_events(tmp_path / "events")
    settings = Settings(state_dir=tmp_path / "state", allowed_locations=(str(tmp_path),))
    with running(settings) as url, httpx.Client(verify=PLAIN, base_url=url, timeout=60) as http:
        http.put("/tables/events", json={"location": str(location)}).raise_for_status()
        http.post("/tables/events/refresh").raise_for_status()
        yield Caches(http, location)


def files_of(group: dict[str, Any]) -> list[dict[str, Any]]:
    """The files of a group, as a worker reports them."""
    names = ("path", "size_bytes", "mtime_ns")
    return [{name: split[name] for name in names} for split in group["splits"]]


def by_path(plan: dict[str, Any], field: str) -> dict[str, Any]:
    return {split["path"]: group[field] for group in plan["groups"] for split in group["splits"]}


def counts(plan: dict[str, Any]) -> tuple[int, ...]:
    names = ("cacheable_files", "cached_files", *PLACEMENTS)
    return tuple(plan["summary"][name] for name in names)


PLACEMENTS = ("primary_placements", "secondary_placements", "fallback_placements")


def test_without_rules_workers_change_nothing(caches: Caches) -> None:
    before = caches.plan()
    caches.beat("cache-1")
    caches.hold("cache-1", files_of(before["groups"][0]))

    after = caches.plan()

    assert after["groups"] == before["groups"]
    assert counts(after) == (0, 0, 0, 0, 0)
    assert set(by_path(after, "cached_on").values()) == {None}


def test_without_live_workers_cacheable_files_still_form_their_own_groups_if_asked_for(
    caches: Caches,
) -> None:
    caches.put_rule(filter="ds >= '2026-11-02'")

    plan = caches.plan(cached_splits="separate")

    assert sorted(len(group["splits"]) for group in plan["groups"]) == [1, 1, 1, 1, 2]
    assert counts(plan) == (4, 0, 0, 0, 4)
    assert set(by_path(plan, "cached_on").values()) == {None}
    # With `by_worker` they share a group, as no worker would keep them.
    assert len(caches.plan(**BY_WORKER)["groups"]) == 1


def test_small_files_share_groups_unless_somebody_wants_them_separate(caches: Caches) -> None:
    caches.put_rule(filter="ds IS NOT NULL")
    caches.beat("cache-1")

    def division(**options: Any) -> tuple[str, int]:
        plan = caches.plan(**options)
        return plan["options"]["cached_splits"], len(plan["groups"])

    assert division() == ("by_worker", 1)
    assert division(cached_splits="separate") == ("separate", 6)
    # Another system's way is left as it is.
    assert division(strategy="openlookeng") == ("separate", 6)
    definition = {"location": str(caches.location), "plan_options": {"cached_splits": "separate"}}
    caches.http.put("/tables/events", json=definition).raise_for_status()
    assert division() == ("separate", 6)


def test_cacheable_files_are_placed_on_workers_and_read_there_from_then_on(
    caches: Caches,
) -> None:
    caches.put_rule(filter="ds IS NOT NULL")
    for host in HOSTS:
        caches.beat(host)
    first = caches.plan()
    placed = by_path(first, "cached_on")
    assert set(placed.values()) <= set(HOSTS)
    assert by_path(first, "hosts") == {path: [host] for path, host in placed.items()}
    assert counts(first)[:2] == (6, 0)
    assert sum(counts(first)[2:4]) == 6

    caches.hold_as_planned()
    second = caches.plan()

    assert by_path(second, "cached_on") == placed
    assert counts(second) == (6, 6, 0, 0, 0)
    together = caches.plan(**BY_WORKER)
    assert by_path(together, "cached_on") == placed
    assert len(together["groups"]) == len(set(placed.values()))
    stream = caches.http.get(f"/plans/{together['plan_id']}/groups", headers=ARROW).content
    with pa.ipc.open_stream(stream) as reader:
        groups = reader.read_all()
    assert groups["cached_on"].to_pylist() == [g["cached_on"] for g in together["groups"]]


def test_only_files_that_match_a_rule_are_cacheable(caches: Caches) -> None:
    caches.beat("cache-1")
    caches.put_rule(filter="ds = '2026-11-01'")
    caches.put_rule("other", filter="ds = '2026-11-03'")

    held = by_path(caches.plan(), "cached_on")

    assert {path for path, host in held.items() if host is None} == {
        path for path in held if "2026-11-02" in path
    }
    caches.http.delete("/tables/events/cache-rules/other").raise_for_status()
    assert counts(caches.plan())[0] == 2


def test_a_size_limit_keeps_the_newest_partitions(caches: Caches) -> None:
    caches.beat("cache-1")
    sizes = {
        path: (caches.location / path).stat().st_size for path in hive.data_files(caches.location)
    }
    newest = sorted(sizes)[-3:]
    caches.put_rule(filter="ds IS NOT NULL", max_bytes=sum(sizes[path] for path in newest))

    held = by_path(caches.plan(), "cached_on")

    assert sorted(path for path, host in held.items() if host) == newest
    # The limit selects the same files whatever part of the table is planned.
    answer = caches.http.post("/plans", json={"table": "events", "filter": "ds <= '2026-11-02'"})
    assert counts(answer.json())[0] == 1
    caches.put_rule(filter="ds IS NOT NULL", max_bytes=1)
    assert counts(caches.plan())[0] == 0


def test_a_changed_file_is_not_cached_where_the_old_one_is(caches: Caches) -> None:
    caches.put_rule(filter="ds IS NOT NULL")
    caches.beat("cache-1")
    caches.hold_as_planned()
    path = hive.data_files(caches.location)[0]
    hive.write_file(caches.location / path, range(900, 950))
    caches.http.post("/tables/events/refresh", params={"full": "true"}).raise_for_status()

    plan = caches.plan()

    assert counts(plan) == (6, 5, 1, 0, 0)


def test_files_without_room_on_any_worker_may_be_read_anywhere(caches: Caches) -> None:
    caches.put_rule(filter="ds IS NOT NULL")
    sizes = [(caches.location / path).stat().st_size for path in hive.data_files(caches.location)]
    caches.beat("cache-1", capacity_bytes=2 * max(sizes))

    plan = caches.plan()

    assert counts(plan) == (6, 0, 2, 0, 4)


def test_a_recreated_table_has_no_rules_and_inherits_nothing(caches: Caches) -> None:
    caches.put_rule(filter="ds IS NOT NULL")
    caches.beat("cache-1")
    caches.hold_as_planned()
    caches.http.delete("/tables/events").raise_for_status()
    caches.http.put("/tables/events", json={"location": str(caches.location)}).raise_for_status()
    caches.http.post("/tables/events/refresh").raise_for_status()

    assert counts(caches.plan()) == (0, 0, 0, 0, 0)
    caches.put_rule(filter="ds IS NOT NULL")
    assert counts(caches.plan())[:2] == (6, 0)


def test_an_explanation_shows_the_placement(caches: Caches) -> None:
    caches.put_rule(filter="ds >= '2026-11-02'")
    for host in HOSTS:
        caches.beat(host)
    alone = caches.plan(cached_splits="separate")
    files = files_of(next(g for g in alone["groups"] if g["cached_on"]))
    caches.hold("cache-2", files)
    plan = caches.plan(**BY_WORKER)

    explanation = caches.http.get(f"/plans/{plan['plan_id']}/explain").json()

    told = {each["host"]: each for each in explanation["placements"]}
    assert told["cache-2"]["cached_files"] == 1
    assert told["cache-2"]["cached_bytes"] == files[0]["size_bytes"]
    assert sum(each["cached_files"] + each["placed_files"] for each in told.values()) == 4
    assert explanation["strategies"][0]["group_count"] == len(plan["groups"])
