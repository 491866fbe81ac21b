"""Machines whose clocks are wrong: nothing of other replicas ends early, and nothing is dropped."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

import windrow
from tests.support.api.problems import problem_of
from tests.support.laws import examples
from tests.support.servers.coordinators import PLAIN, running, wait_until
from tests.support.servers.databases import on_database
from tests.support.tables import hive
from windrow_cli.app import run
from windrow_core.models import PartitionRemoval, RefreshProgress, RefreshStatus
from windrow_jobs.maintain import doubt_about, maintain
from windrow_service.settings import Settings
from windrow_service.store import clock as clocks
from windrow_service.store import schema
from windrow_service.store.clock import Note, machine_clock, machine_run, write_note
from windrow_service.store.database import Database, embedded_url, server_url
from windrow_service.store.refreshes import SqlRefreshStore

# How far clocks of replicas are off: by more than anything here lasts, or by as much as leases do.
SKEWS = {
    "400 days ahead": timedelta(days=400),
    "an hour ahead": timedelta(hours=1),
    "an hour behind": timedelta(hours=-1),
    "400 days behind": timedelta(days=-400),
}
SLIGHT = timedelta(seconds=20)
WRITE = "0123456789abcdef" * 2


@dataclass(frozen=True, slots=True)
class Site:
    """A coordinator whose clock is right, and others on its database; `t` has 30 recent days."""

    right: httpx.Client
    wrong: dict[str, httpx.Client]
    slight: httpx.Client
    url: sa.URL
    location: Path
    plan_id: str


def day(age: int) -> str:
    return f"{datetime.now(timezone.utc).date() - timedelta(days=age)}"


@pytest.fixture(
    scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)]
)
def site(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("site")
    fields: dict[str, Any] = {
        "state_dir": folder / "state",
        "allowed_locations": (str(folder),),
        "require_tokens": False,
    }
    with ExitStack() as stack:
        # The second check is sure.
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setattr(clocks, "_SURE_AFTER_S", 0.0)
        if request.param == "postgresql":
            fields["database_url"] = request.getfixturevalue("_module_database")
        settings = Settings(**fields)

        def started(skew: timedelta) -> httpx.Client:
            url = stack.enter_context(running(settings, machine=lambda: machine_clock() + skew))
            return stack.enter_context(httpx.Client(verify=PLAIN, base_url=url, timeout=60))

        right = started(timedelta())
        for age in range(30):
            hive.write_file(folder / "t" / f"ds={day(age)}" / "a.parquet", range(3))
        right.put("/tables/t", json={"location": str(folder / "t")}).raise_for_status()
        right.post("/tables/t/refresh").raise_for_status()
        right.put("/policies/*", json={"keep_days": 90, "keep_by": "ds"}).raise_for_status()
        key = {"Idempotency-Key": "made-once"}
        plan = right.post("/plans", json={"table": "t"}, headers=key).raise_for_status().json()
        right.put(f"/tables/t/writes/{WRITE}", json=write("here")).raise_for_status()
        url = server_url(fields["database_url"]) if "database_url" in fields else None
        yield Site(
            right=right,
            wrong={name: started(skew) for name, skew in SKEWS.items()},
            slight=started(SLIGHT),
            url=url or embedded_url(settings.state_dir),
            location=folder / "t",
            plan_id=plan["plan_id"],
        )


@pytest.fixture(scope="module")
def _module_database(postgresql_server: str, _newest_database: str) -> Iterator[str]:
    from tests.support.servers.databases import new_database

    with new_database(postgresql_server, copied_from=_newest_database) as url:
        yield url


def write(host: str, **fields: Any) -> dict[str, Any]:
    known = {"mode": "append", "state": "staging", "host": host, "process": 7}
    return {**known, "lease_seconds": 300, **fields}


@pytest.mark.parametrize("skew", SKEWS)
def test_a_live_write_is_not_taken_over_by_the_clock_of_another_replica(
    site: Site, skew: str
) -> None:
    path = f"/tables/t/writes/{WRITE}"
    there = site.wrong[skew]

    taken = there.put(path, json=write("elsewhere", takes_over=True))

    problem_of(taken, 409, "write-taken")
    assert there.get(path).json()["alive"]
    # Renewed there, it is still alive here, for as long as was asked.
    there.put(path, json=write("here")).raise_for_status()
    renewed = site.right.get(path).json()
    assert renewed["alive"]
    assert _age(renewed["expires_at"]) > timedelta(seconds=-310)


@pytest.mark.parametrize("skew", SKEWS)
def test_plans_live_as_long_on_each_replica_and_survive_the_purges_of_all(
    site: Site, skew: str
) -> None:
    there = site.wrong[skew]
    assert there.get(f"/plans/{site.plan_id}").is_success

    made = there.post("/plans", json={"table": "t"}).raise_for_status().json()

    seen = site.right.get(f"/plans/{made['plan_id']}")
    assert seen.is_success
    assert timedelta(minutes=-1) < _age(seen.json()["created_at"]) < timedelta(minutes=1)
    assert _age(seen.json()["expires_at"]) < timedelta(minutes=-50)


@pytest.mark.parametrize("skew", SKEWS)
def test_a_refresh_that_another_replica_runs_is_joined_not_repeated(site: Site, skew: str) -> None:
    name = f"r_{skew.replace(' ', '_')}"
    site.right.put(f"/tables/{name}", json={"location": str(site.location)}).raise_for_status()

    async def begin(database: Database) -> None:
        # In the place of a replica that refreshes the table now, and for ten minutes.
        now = database.clock()
        progress = RefreshProgress(phase="listing")
        status = RefreshStatus(
            refresh_id="ab" * 16,
            table=name,
            status="running",
            started_at=now,
            seconds=0.0,
            progress=progress,
        )
        store = SqlRefreshStore(database)
        until = now + timedelta(minutes=10)
        await store.begin(status, full=False, now=now, lease_until=until)

    on_database(site.url, begin)
    answer = site.wrong[skew].post(f"/tables/{name}/refresh", headers={"Prefer": "respond-async"})

    assert answer.json()["refresh_id"] == "ab" * 16
    site.right.delete(f"/tables/{name}").raise_for_status()


@pytest.mark.parametrize("skew", SKEWS)
def test_a_replica_whose_clock_is_wrong_decides_nothing_and_gives_out_no_work(
    site: Site, skew: str
) -> None:
    there = site.wrong[skew]

    for call in ("rounds", "claims"):
        refused = there.post(f"/maintenance/{call}", json={"worker": "w"})
        problem_of(refused, 503, "clock-skew")
        assert f" {skew.rpartition(' ')[2]}" in refused.json()["detail"]
        assert int(refused.headers["Retry-After"]) > 0
    assert site.right.post("/maintenance/rounds").is_success
    assert site.right.post("/maintenance/claims", json={"worker": "w"}).status_code == 204
    assert len(hive.data_files(site.location)) == 30


@pytest.mark.parametrize("skew", SKEWS)
def test_a_replica_whose_clock_is_wrong_is_live_but_not_ready(site: Site, skew: str) -> None:
    there = site.wrong[skew]

    first, second = there.get("/health/ready"), there.get("/health/ready")

    # The first check may find a machine that was asleep until now.
    assert first.status_code in (200, 503)
    problem_of(second, 503, "clock-skew")
    assert there.get("/health/live").is_success
    assert site.right.get("/health/ready").json()["checks"]["clock"] == "ok"


def test_a_replica_whose_clock_is_slightly_off_is_degraded_and_works(site: Site) -> None:
    health = site.slight.get("/health/ready")

    assert health.is_success
    assert (health.json()["status"], health.json()["checks"]["clock"]) == ("degraded", "skewed")
    assert site.slight.post("/maintenance/rounds").is_success


def test_what_is_kept_for_days_outlives_the_purges_of_all_replicas(site: Site) -> None:
    # All have purged at their start, and other tests have kept them busy since.
    async def counts(database: Database) -> dict[str, int]:
        tables = (schema.audit, schema.plan_history, schema.idempotency_keys, schema.plans)
        return {
            one.name: len(await database.rows(sa.select(one))) for one in (*tables, schema.receipts)
        }

    for _ in range(2):
        assert all(on_database(site.url, counts).values())
        asyncio.run(asyncio.sleep(1))


def test_times_that_are_shown_are_those_of_the_database(site: Site) -> None:
    pages = [client.get("/dashboard/plans") for client in (site.right, *site.wrong.values())]

    assert all(" s ago" in page.text or " min ago" in page.text for page in pages)


# --- a machine whose clock was set ---------------------------------------------------------------


def test_a_machine_whose_clock_was_wrong_at_first_is_trusted_once_somebody_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clocks, "_SURE_AFTER_S", 0.0)
    settings = Settings(state_dir=tmp_path / "state", allowed_locations=(str(tmp_path),))

    async def note_wrong_time(database: Database) -> None:
        async with database.writing() as connection:
            ahead = machine_clock() + timedelta(hours=2)
            await write_note(connection, Note(machine_run(), ahead))

    on_database(embedded_url(settings.state_dir), note_wrong_time)
    with running(settings) as url, httpx.Client(verify=PLAIN, base_url=url, timeout=60) as http:
        first = http.get("/health/ready").json()
        problem_of(http.get("/health/ready"), 503, "clock-skew")
        assert (first["status"], first["checks"]["clock"]) == ("degraded", "skewed")
        assert "windrow db trust-clock" in http.get("/health/ready").json()["detail"]

        assert run(["db", "trust-clock", "--state-dir", str(settings.state_dir)]) == 0

        assert "this machine's clock counts" in capsys.readouterr().out
        wait_until(lambda: http.get("/health/ready").is_success)


def test_a_server_needs_no_word_about_the_clock(
    upgraded_postgresql_url: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("WINDROW_DATABASE_URL", upgraded_postgresql_url)

    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(run, ["db", "trust-clock"]).result() == 0

    assert "set the clock of the machine that is wrong" in capsys.readouterr().out


def test_a_worker_drops_nothing_that_its_own_clock_would_keep(tmp_path: Path) -> None:
    # Nobody can tell a coordinator whose clock was wrong from the start.
    settings = Settings(state_dir=tmp_path / "state", allowed_locations=(str(tmp_path),))
    location, skew = tmp_path / "t", timedelta(days=60)
    for age in range(100):
        hive.write_file(location / f"ds={day(age)}" / "a.parquet", range(3))
    with (
        running(settings, machine=lambda: machine_clock() + skew) as url,
        windrow.connect(url) as client,
    ):
        client.register_table("t", str(location))
        client.refresh("t")
        client.set_policy("t", keep_days=90)
        outcomes = [maintain(_no_spark, client) for _ in range(3)]
        (failure,) = (one for one in client.receipts("t") if one.state == "failed")

    assert [(one.failed, one.files_dropped) for one in outcomes] == [(0, 0), (1, 0), (0, 0)]
    assert "by this worker's clock the first day to keep is" in failure.text
    assert len(hive.data_files(location)) == 100


@examples(200)
@given(
    st.integers(1_600_000_000, 1_900_000_000).map(
        lambda seconds: datetime.fromtimestamp(seconds, timezone.utc)
    ),
    st.integers(1, 400),
    st.integers(-500, 500),
    st.sampled_from(["UTC", "Asia/Tokyo", "America/New_York", "Mars/Olympus"]),
    st.none() | st.integers(-30, 30),
    st.booleans(),
)
def test_a_worker_agrees_to_a_cutoff_that_is_not_later_than_its_own_and_leaves_the_newest_day(
    now: datetime,
    keep_days: int,
    ahead_days: int,
    zone: str,
    newest_days: int | None,
    may_drop_all: bool,
) -> None:
    before = now.date() - timedelta(days=keep_days) + timedelta(days=ahead_days)
    newest = None if newest_days is None else before + timedelta(days=newest_days)
    removal = PartitionRemoval(
        column="ds",
        before=before,
        zone=zone,
        partitions=1,
        files=1,
        size_bytes=1,
        rows=1,
        others=0,
        newest=newest,
        keep_days=keep_days,
        may_drop_all=may_drop_all,
    )

    doubt = doubt_about(removal, now)

    drops_all = newest_days is None or newest_days < 0
    if ahead_days > 2 or (drops_all and not may_drop_all):
        assert doubt is not None
    # The day may be another one in the zone of the policy.
    elif ahead_days <= 0:
        assert doubt is None


def _no_spark() -> None:
    pytest.fail("Spark was started")


def _age(at: str) -> timedelta:
    return datetime.now(timezone.utc) - datetime.fromisoformat(at.replace("Z", "+00:00"))
