"""The history of plans: what is kept of each, for how long, and for whom."""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from itertools import product
from typing import Any

import httpx
import pytest
import sqlalchemy as sa

import windrow
from tests.support.api.dashboards import LAKE, Operated, token, written
from tests.support.api.problems import problem_of
from tests.support.plans.plan_records import EMPTY, HOUR, LARGE, SMALL, START, completed, submitted
from tests.support.servers.coordinators import PLAIN, running
from tests.support.servers.databases import on_database
from windrow_core.models import PlanRequest, ScanReport
from windrow_core.planning import PlanPhase
from windrow_service.settings import LimitSettings, Settings
from windrow_service.store.database import Database
from windrow_service.store.plan_history import SqlPlanHistory
from windrow_service.store.plans import SqlPlanStore
from windrow_service.usecases.access.authenticate import ANONYMOUS, Principal
from windrow_service.usecases.access.grants import compiled
from windrow_service.usecases.errors import RepeatedRequestError
from windrow_service.usecases.plans.errors import PlanCancelledError, PlansFullError
from windrow_service.usecases.plans.history import PlanConditions
from windrow_service.usecases.plans.ports import Mine, PlanBody, PlanChunk
from windrow_service.usecases.ports import Once

EVERYTHING, NEWEST = Mine.of(ANONYMOUS), PlanConditions()
Law = Callable[[SqlPlanStore, SqlPlanHistory], Awaitable[None]]


@pytest.fixture
def holds(database_url: sa.URL) -> Callable[[Law], None]:
    """Run a law on a store of 1,000 bytes in an empty database, a second after START."""

    async def run(law: Law, database: Database) -> None:
        later = START + timedelta(seconds=1)
        await law(SqlPlanStore(database, lambda: later, 1_000), SqlPlanHistory(database))

    return lambda law: on_database(database_url, lambda database: run(law, database))


async def ids(
    history: SqlPlanHistory, wanted: PlanConditions = NEWEST, mine: Mine = EVERYTHING
) -> Any:
    return [one.plan_id for one in await history.page(mine, wanted, 1_000)]


def once(plan_id: str) -> Once:
    return Once(principal="me", key="k", fingerprint="f", answer=lambda _: plan_id)


def test_each_way_to_store_a_plan_records_it_once(holds: Callable[[Law], None]) -> None:
    async def law(store: SqlPlanStore, history: SqlPlanHistory) -> None:
        await store.put(completed("small"), SMALL)
        await store.put(completed("large"), LARGE)
        await store.put(completed("empty"), EMPTY)
        await store.put(completed("shared", "small"))
        await store.put(completed("keyed"), SMALL, once=once("keyed"))
        with pytest.raises(RepeatedRequestError):
            await store.put(completed("again"), SMALL, once=once("again"))
        for name in ("finished", "failed", "abandoned"):
            await store.put(submitted(name), lease_until=START)
        assert await ids(history) == ["keyed", "shared", "empty", "large", "small"]
        await store.finish(completed("finished"), SMALL)
        with pytest.raises(PlanCancelledError):
            await store.finish(completed("finished", "other"), LARGE)
        problem: dict[str, object] = {"title": "Plan is too large", "status": 409}
        await store.finish(submitted("failed", state="failed", problem=problem))
        huge = PlanBody(head=bytes(1_001), chunks=[PlanChunk(first_group=0, data=b"")], tail=b"")
        with pytest.raises(PlansFullError):
            await store.put(completed("huge"), huge)

        noted = await history.page(EVERYTHING, NEWEST, 1_000)

        told = ["failed", "finished", "keyed", "shared", "empty", "large", "small"]
        assert [one.plan_id for one in noted] == told
        assert [one.plan_id for one in noted if one.groups_of is not None] == ["shared"]
        assert {one.plan_id: one.status for one in noted}["failed"] == "failed"
        assert noted[0].problem == problem
        assert noted[0].summary is None
        assert {one.seconds for one in noted} == {1.0}
        info = completed("large").info
        assert info is not None
        assert noted[5].summary == info.summary
        assert noted[5].options == info.options

    holds(law)


def test_a_plan_that_is_not_to_be_listed_is_listed_only_if_it_fails(
    holds: Callable[[Law], None],
) -> None:
    async def law(store: SqlPlanStore, history: SqlPlanHistory) -> None:
        await store.put(completed("small", is_listed=False), SMALL)
        await store.put(completed("large", is_listed=False), LARGE)
        await store.put(completed("shared", "small", is_listed=False))
        for name in ("finished", "failed"):
            await store.put(submitted(name, is_listed=False), lease_until=START)
        await store.finish(completed("finished", is_listed=False), SMALL)
        problem: dict[str, object] = {"title": "Column not found", "status": 422}
        failed = submitted("failed", state="failed", problem=problem, is_listed=False)
        await store.finish(failed)

        assert await ids(history) == ["failed"]
        assert (await store.get("large", START)).info is not None

    holds(law)


def test_a_plan_stays_in_the_history_until_it_is_too_old_or_there_are_too_many(
    holds: Callable[[Law], None],
) -> None:
    async def law(store: SqlPlanStore, history: SqlPlanHistory) -> None:
        for hour in range(6):
            at = START + hour * HOUR
            await store.put(completed(f"p{hour}", created_at=at, expires_at=at + HOUR), SMALL)
        await store.delete("p5", START)
        await store.purge(START + 9 * HOUR)

        assert await history.purge(START + HOUR, 6) == 1
        assert await ids(history) == ["p5", "p4", "p3", "p2", "p1"]
        assert await history.purge(START, 2) == 3
        assert await ids(history) == ["p5", "p4"]
        assert await history.purge(START + 9 * HOUR, 2) == 2
        await store.put(completed("new"), SMALL)
        (found,) = await history.page(EVERYTHING, NEWEST, 9)
        assert found.number == 7

    holds(law)


def test_a_caller_finds_the_plans_that_it_may_use_and_no_others(
    holds: Callable[[Law], None],
) -> None:
    made = {
        f"{number}": (maker, table)
        for number, (maker, table) in enumerate(
            product(("me", "other"), ("a.t", "a.u", "b.t", "A.t", "a"))
        )
    }
    granted = ["read", "write", "admin", "worker", "read:a.*", "write:a.t", "admin:a.*", "read:a"]

    async def law(store: SqlPlanStore, history: SqlPlanHistory) -> None:
        for name, (maker, table) in made.items():
            request = PlanRequest(table=table)
            await store.put(completed(name, principal=maker, request=request), SMALL)
        for grants in [(one,) for one in granted] + [("read", "admin:b.t"), ("worker", "read:A.*")]:
            caller = Principal("me", compiled(grants))
            allowed = [name for name, of in made.items() if caller.may_use(*of)]

            found = await ids(history, mine=Mine.of(caller))

            assert found == allowed[::-1], grants

    holds(law)


def test_plans_are_found_by_table_time_and_id_a_page_at_a_time(
    holds: Callable[[Law], None],
) -> None:
    async def law(store: SqlPlanStore, history: SqlPlanHistory) -> None:
        made = []
        for number in range(12):
            table, at = f"t{number % 3}", START + number * HOUR
            request = PlanRequest(table=table)
            await store.put(completed(f"p{number}", created_at=at, request=request), SMALL)
            made.append((f"p{number}", table, at))
        times = (None, START, START + 3 * HOUR, START + 7 * HOUR)
        for table, since, until in product((None, "t1", "none"), times, times):
            expected = [
                name
                for name, of, at in reversed(made)
                if table in (None, of)
                and (since is None or at >= since)
                and (until is None or at < until)
            ]
            conditions = PlanConditions(table=table, since=since, until=until)
            found: list[str] = []
            while page := await history.page(EVERYTHING, conditions, 2):
                found += [one.plan_id for one in page]
                conditions = replace(conditions, before=page[-1].number)
            assert found == expected
        assert await ids(history, PlanConditions(plan_id="p4")) == ["p4"]
        assert await ids(history, PlanConditions(plan_id="p1")) == ["p11", "p10", "p1"]
        assert await ids(history, PlanConditions(plan_id="q")) == []

    holds(law)


@dataclass(frozen=True)
class Site:
    """A coordinator that requires tokens, and whose plans expire after a second."""

    url: str
    settings: Settings

    def open(self, name: str, *grants: str) -> httpx.Client:
        sent = {"Authorization": f"Bearer {token(self.settings, name, *grants)}"}
        return httpx.Client(verify=PLAIN, base_url=self.url, timeout=60, headers=sent)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    settings = Settings(
        state_dir=tmp_path_factory.mktemp("history"),
        allowed_locations=(LAKE,),
        require_tokens=True,
        limits=LimitSettings(plan_ttl=timedelta(seconds=1)),
    )
    with running(settings) as url:
        operated = Operated(url, token(settings, "operator", "admin"))
        operated.register("sales.events")
        days = [f"ds=2026-11-{day:02d}" for day in (2, 3, 4)]
        operated.publish("sales.events", written(days, 4, 1_000, day=1))
        operated.http.close()
        yield Site(url, settings)


def expired(http: httpx.Client, **asked: Any) -> str:
    """Make a plan, wait until it has expired, and return its id."""
    made = http.post("/plans", json={"table": "sales.events", **asked})
    plan_id = made.raise_for_status().json()["plan_id"]
    deadline = time.monotonic() + 60
    while http.get(f"/plans/{plan_id}").status_code == 200:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    problem_of(http.get(f"/plans/{plan_id}"), 404, "plan-not-found")
    return str(plan_id)


def page_of(site: Site, path: str, name: str, *grants: str) -> httpx.Response:
    with httpx.Client(verify=PLAIN, base_url=site.url, timeout=60) as http:
        http.post("/dashboard/sign-in", data={"token": token(site.settings, name, *grants)})
        return http.get(path)


@pytest.mark.slow
def test_figures_of_a_plan_that_has_expired_are_kept_for_its_maker_and_admin(site: Site) -> None:
    options = {"parallelism": 3}
    with site.open("etl", "read:sales.*") as http:
        plan_id = expired(http, filter="ds >= '2026-11-03'", options=options, columns=["id"])
        (kept,) = http.get("/plans", params={"plan_id": plan_id}).json()["plans"]

    assert kept["filter"] == "ds >= '2026-11-03'"
    assert (kept["table"], kept["principal"], kept["status"]) == (
        "sales.events",
        "etl",
        "completed",
    )
    assert kept["summary"]["files_pruned_by_partition"] == 4
    assert kept["summary"]["files_planned"] == 8
    assert kept["column_count"] == 1
    assert kept["option_sources"] == {"parallelism": "request"}
    phases = kept["summary"]["phase_seconds"]
    assert list(phases) == [phase.label for phase in PlanPhase]
    assert sum(phases.values()) == pytest.approx(kept["summary"]["planning_seconds"], abs=1e-5)
    assert kept["seconds"] >= kept["summary"]["planning_seconds"]
    slowest = kept["summary"]["slowest_slot_seconds"]
    tasks = kept["summary"]["all_tasks_seconds"]
    assert tasks / 3 <= slowest <= tasks
    path = f"/dashboard/plans/{plan_id}"
    for caller, is_shown in (
        (("etl", "read:sales.*"), True),
        (("boss", "admin:sales.*"), True),
        (("peer", "write"), False),
        (("etl", "read:hr.*"), False),
    ):
        with site.open(*caller) as http:
            listed = http.get("/plans", params={"plan_id": plan_id}).raise_for_status().json()
        assert (listed["plans"] != []) == is_shown, caller
        shown = page_of(site, path, *caller)
        assert shown.status_code == (200 if is_shown else 404), caller
        if is_shown:
            assert "This plan has expired, or was deleted" in shown.text
            assert PlanPhase.PACK.value in shown.text
            assert "<code>parallelism=3</code> by the request" in shown.text
            assert "Strategies side by side" not in shown.text


def test_plans_that_their_caller_does_not_want_listed_are_not_listed(site: Site) -> None:
    with site.open("prober", "read") as http:
        for wait in ("", "respond-async, wait=30, "):
            preferred = {"Prefer": f"{wait}unlisted"}
            made = http.post("/plans", json={"table": "sales.events"}, headers=preferred)
            assert made.json()["status"] == "completed"
            assert made.status_code == 200
        listed = http.get("/plans").json()["plans"]

    assert listed == []


def test_plans_that_failed_or_share_groups_are_listed_as_such(site: Site) -> None:
    with site.open("analyst", "read") as http:
        first = http.post("/plans", json={"table": "sales.events"}).json()["plan_id"]
        again = http.post("/plans", json={"table": "sales.events", "reuse": True}).json()
        background = {"Prefer": "respond-async, wait=30"}
        asked = {"table": "sales.events", "columns": ["nothing"]}
        http.post("/plans", json=asked, headers=background).raise_for_status()
        plans = http.get("/plans", params={"table": "sales.events"}).json()["plans"]

    assert plans[0]["status"] == "failed"
    assert "no column 'nothing'" in plans[0]["problem"]["detail"]
    assert (plans[1]["plan_id"], plans[1]["groups_of"]) == (again["plan_id"], first)
    shown = page_of(site, "/dashboard/plans?table=sales.events", "analyst", "read").text
    assert "no column" in shown
    failed = page_of(site, f"/dashboard/plans/{plans[0]['plan_id']}", "analyst", "read").text
    assert "This plan could not be made" in failed
    shared = page_of(site, f"/dashboard/plans/{again['plan_id']}", "analyst", "read").text
    assert "This plan shares the groups of plan" in shared


def test_the_page_of_plans_is_searched_by_table_and_time(site: Site) -> None:
    with site.open("planner", "read") as http:
        http.post("/plans", json={"table": "sales.events"}).raise_for_status()
    now = datetime.now(timezone.utc)
    hour_ago, soon = (f"{now + timedelta(hours=at):%Y-%m-%dT%H:%M}" for at in (-1, 1))

    def rows(**asked: str) -> int:
        path = f"/dashboard/plans?{httpx.QueryParams(asked)}"
        shown = page_of(site, path, "planner", "read")
        assert shown.status_code == 200, shown.text
        return len(re.findall(r'href="[^"]*/dashboard/plans/[0-9a-f]{32}"', shown.text))

    assert rows() == 1
    assert rows(table="sales.events", since=hour_ago, until=soon) == 1
    assert rows(since=soon) == rows(until=hour_ago) == rows(table="sales") == 0
    for odd in ("yesterday", "0001-01-01T00:00+14:00"):
        assert page_of(site, f"/dashboard/plans?since={odd}", "planner", "read").status_code == 422


def test_times_must_have_a_time_zone(site: Site) -> None:
    with (
        windrow.connect(site.url, token=token(site.settings, "zoned", "read")) as client,
        site.open("zoned", "read") as http,
    ):
        client.plan("sales.events")
        east = timezone(timedelta(hours=9))
        minute_ago = (datetime.now(timezone.utc) - timedelta(minutes=1)).astimezone(east)
        (found,) = client.past_plans(since=minute_ago)
        assert list(client.past_plans(until=minute_ago)) == []
        (same,) = client.past_plans(table="sales.events", plan_id=found.plan_id)
        assert same == found
        problem_of(http.get("/plans", params={"since": "2026-11-01T00:00"}), 422, "invalid-request")
        far = "0001-01-01T00:00+14:00"
        problem_of(http.get("/plans", params={"since": far}), 422, "invalid-request")


def test_the_length_of_a_filter_in_the_history_is_bounded(site: Site) -> None:
    values = ", ".join(str(number) for number in range(1_000))
    with site.open("wordy", "read") as http:
        asked = {"table": "sales.events", "filter": f"id IN ({values})"}
        http.post("/plans", json=asked).raise_for_status()
        tree = {"op": "gt", "column": "id", "value": 5}
        http.post("/plans", json={"table": "sales.events", "filter": tree}).raise_for_status()
        of_tree, of_text = http.get("/plans").json()["plans"]

    assert of_tree["filter"] == "id > 5"
    assert len(of_text["filter"]) == 2_001
    assert of_text["filter"].endswith("…")


def test_reports_are_kept_of_own_plans_alone_and_the_last_one_counts(
    holds: Callable[[Law], None],
) -> None:
    async def law(store: SqlPlanStore, history: SqlPlanHistory) -> None:
        mine, other = 32 * "a", 32 * "b"
        await store.put(completed(mine), SMALL)
        await store.put(replace(completed(other), principal="other"), LARGE)
        problem: dict[str, object] = {"title": "Plan is too large", "status": 409}
        await store.put(submitted("failed"), lease_until=START)
        await store.finish(submitted("failed", state="failed", problem=problem))
        maker = completed(mine).principal

        def scan(plan_id: str, seconds: float) -> ScanReport:
            return ScanReport(plan_id=plan_id, seconds=seconds, planning_seconds=0.5)

        await history.report(maker, [])
        await history.report(maker, [scan(mine, 3.0), scan(other, 3.0), scan(32 * "c", 3.0)])
        await history.report(maker, [scan(mine, 7.0)])

        took = {one.plan_id: one.scan for one in await history.page(EVERYTHING, NEWEST, 9)}
        assert took[other] is took["failed"] is None
        assert took[mine] is not None
        assert (took[mine].seconds, took[mine].planning_seconds) == (7.0, 0.5)
        assert await ids(history, PlanConditions(least_seconds=7)) == [mine]
        assert await ids(history, PlanConditions(least_seconds=7.1)) == []
        assert await ids(history, PlanConditions(principal="other")) == [other]
        assert await ids(history, PlanConditions(status="failed")) == ["failed"]
        assert await ids(history, PlanConditions(status="completed")) == [other, mine]

    holds(law)


def test_what_a_scan_took_is_shown_with_its_plan_beside_what_was_predicted(site: Site) -> None:
    body = {"table": "sales.events", "filter": "amount > 3"}
    with site.open("reporter", "read:sales.*") as http:
        plan_id = http.post("/plans", json=body).raise_for_status().json()["plan_id"]
        path = f"/dashboard/plans/{plan_id}"
        before = page_of(site, path, "reporter", "read:sales.*").text
        scan = {"plan_id": plan_id, "seconds": 92.5, "planning_seconds": 0.25}
        scan |= {"groups": {"files": 12, "seconds": 90.0}}

        assert http.post("/scan-reports", json={"scans": [scan]}).status_code == 204
        (plan,) = http.get("/plans", params={"plan_id": plan_id}).json()["plans"]
        wrong = http.post("/scan-reports", json={"scans": [scan | {"seconds": -1}]})
        problem_of(wrong, 422, "invalid-request")

    assert "not reported" in before
    assert (plan["scan"]["seconds"], plan["scan"]["groups"]["files"]) == (92.5, 12)
    after = page_of(site, path, "reporter", "read:sales.*").text
    assert "Why the read took 92.8 s" in after
    assert "<code>amount &gt; 3</code> left out nothing: all 12 files are read" in after
    listed = page_of(site, "/dashboard/plans?took=90&who=reporter", "reporter", "read:sales.*").text
    assert plan_id in listed
    later = page_of(site, "/dashboard/plans?took=93", "reporter", "read:sales.*").text
    assert plan_id not in later
