"""Work of maintenance on every database: who gets it, how it ends, what is counted."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta, timezone
from functools import partial

import pytest
import sqlalchemy as sa

from tests.support.servers.databases import on_database
from windrow_core.models import (
    BudgetLeft,
    ClaimRequest,
    ClaimUpdate,
    MaintenanceRound,
    RealisedGain,
    WorkOutcome,
    WorkPrediction,
)
from windrow_service.store.database import Database
from windrow_service.store.policies import SqlPolicyStore
from windrow_service.store.receipts import SqlWorkStore
from windrow_service.usecases.maintenance.errors import ClaimLostError
from windrow_service.usecases.maintenance.work import (
    MAX_ATTEMPTS,
    NEWEST,
    Decisions,
    NewWork,
    Skip,
    WorkBody,
    turn_of,
)
from windrow_service.usecases.names import Names

NOW = datetime(2026, 11, 21, tzinfo=timezone.utc)
SECOND, MINUTE, DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(days=1)
ALL = Names(every=True)
ROUND = MaintenanceRound(
    began_at=NOW,
    seconds=0.1,
    tables=1,
    partitions=2,
    items=2,
    excess_files=8,
    left=BudgetLeft(core_seconds=5.0, size_bytes=None),
)
PREDICTION = WorkPrediction(
    partitions=1,
    files=10,
    becomes=1,
    size_bytes=1_000,
    cost_seconds=4.0,
    gain_seconds=1.0,
    reads_per_day=2.0,
    saved_seconds=60.0,
    score=15.0,
)
DONE = ClaimUpdate(
    state="done",
    text="10 files became 1",
    outcome=WorkOutcome(files_before=10, files_after=1, bytes_before=900, core_seconds=6.0),
)
ALIVE = ClaimUpdate(state="running")


def claim(worker: str, pattern: str = "*", *, without_spark: bool = False) -> ClaimRequest:
    return ClaimRequest(worker=worker, pattern=pattern, without_spark=without_spark)


Law = Callable[[SqlWorkStore], Awaitable[None]]


@pytest.fixture
def holds(database_url: sa.URL) -> Callable[[Law], None]:
    """Run a law on a database."""

    async def run(law: Law, database: Database) -> None:
        await law(SqlWorkStore(database))

    return lambda law: on_database(database_url, partial(run, law))


Holds = Callable[[Law], None]


def work(table: str, *folders: str) -> NewWork:
    body = WorkBody(
        folders=list(folders),
        folder_bytes=[1_000] * len(folders),
        target_file_size=2**27,
        small_file_size=2**20,
        min_files=2,
        readers_may_see_both=False,
        prediction=PREDICTION,
        text="because",
    )
    return NewWork(table=table, body=body)


async def decide(
    store: SqlWorkStore,
    *new: NewWork,
    skips: Sequence[Skip] = (),
    now: datetime = NOW,
    refill: tuple[float, float] = (0.0, 0.0),
) -> None:
    assert await store.begin_round("me", now, now + MINUTE)
    decisions = Decisions(work=new, skips=skips, refill=refill, round=ROUND)
    assert await store.decide("me", decisions, now)


def test_one_round_runs_at_a_time_until_its_lease_runs_out(holds: Holds) -> None:
    async def law(store: SqlWorkStore) -> None:
        nothing = Decisions(work=(), skips=(), refill=(1.0, 2.0), round=ROUND)
        assert (await store.shared()).left_at is None
        assert await store.begin_round("a", NOW, NOW + MINUTE)
        assert not await store.begin_round("b", NOW, NOW + MINUTE)
        assert await store.renew_round("a", NOW + 2 * MINUTE)
        assert not await store.renew_round("b", NOW + 2 * MINUTE)
        assert await store.begin_round("b", NOW + 2 * MINUTE + SECOND, NOW + 3 * MINUTE)
        assert not await store.decide("a", nothing, NOW)
        assert await store.decide("b", nothing, NOW)

        shared = await store.shared()
        assert (shared.left_at, shared.left_seconds, shared.left_bytes) == (NOW, 1.0, 2.0)
        assert shared.round == ROUND
        assert await store.begin_round("a", NOW, NOW + MINUTE)

    holds(law)


def test_workers_at_the_same_time_never_get_the_same_partition(holds: Holds) -> None:
    async def law(store: SqlWorkStore) -> None:
        await decide(store, *(work("t", f"ds={number}") for number in range(4)))

        items = await asyncio.gather(
            *(store.claim(claim(f"w{number}", "*"), ALL, NOW, NOW + MINUTE) for number in range(6))
        )

        folders = [one.folders[0] for one in items if one is not None]
        assert sorted(folders) == ["ds=0", "ds=1", "ds=2", "ds=3"]
        # What workers have is not offered once more by the next round.
        await decide(store, work("t", "ds=3", "ds=4"), work("t", "ds=5"), work("u", "ds=3"))
        more = [await store.claim(claim("w", "*"), ALL, NOW, NOW + MINUTE) for _ in range(3)]
        assert [one and (one.table, one.folders) for one in more] == [
            ("t", ["ds=5"]),
            ("u", ["ds=3"]),
            None,
        ]

    holds(law)


def test_work_of_a_dead_worker_is_given_to_another_a_few_times(holds: Holds) -> None:
    async def law(store: SqlWorkStore) -> None:
        await decide(store, work("t", "ds=1"))
        at, claims = NOW, []
        for attempt in range(MAX_ATTEMPTS):
            item = await store.claim(claim(f"w{attempt}", "*"), ALL, at, at + MINUTE)
            assert item is not None
            claims.append(item.claim_id)
            assert await store.claim(claim("other", "*"), ALL, at + MINUTE, at + DAY) is None
            at += MINUTE + SECOND

        for lost in claims[:-1]:
            with pytest.raises(ClaimLostError):
                await store.update(lost, ALL, DONE, at, at)
        assert await store.claim(claim("last", "*"), ALL, at, at + MINUTE) is None
        (receipt,) = await store.page(NEWEST, 10, ALL)
        assert (receipt.state, receipt.times) == ("failed", MAX_ATTEMPTS)
        assert "its workers died 3 times" in receipt.text
        with pytest.raises(ClaimLostError):
            await store.update(claims[-1], ALL, DONE, at, at)

    holds(law)


def test_a_lease_is_kept_alive_and_the_outcome_is_settled_once(holds: Holds) -> None:
    async def law(store: SqlWorkStore) -> None:
        await decide(store, work("t", "ds=1"), refill=(100.0, 10_000.0))
        item = await store.claim(claim("w", "*"), ALL, NOW, NOW + MINUTE)
        assert item is not None
        assert (item.target_file_size, item.small_file_size) == (2**27, 2**20)
        predicted = await store.shared()
        later = NOW + 2 * MINUTE
        await store.update(item.claim_id, ALL, ALIVE, NOW, later + SECOND)

        assert await store.claim(claim("other", "*"), ALL, later, later + MINUTE) is None
        first = await store.update(item.claim_id, ALL, DONE, later, later)
        again = await store.update(item.claim_id, ALL, DONE, later + DAY, later)

        assert first == again
        assert (first.state, first.text, first.outcome) == ("done", DONE.text, DONE.outcome)
        assert (first.first_at, first.last_at, first.worker) == (NOW, later, "w")
        with pytest.raises(ClaimLostError):
            await store.update(item.claim_id, ALL, ALIVE, later, later)
        settled = await store.shared()
        assert (predicted.left_seconds, predicted.left_bytes) == (96.0, 9_000.0)
        assert (settled.left_seconds, settled.left_bytes) == (94.0, 9_100.0)
        gain = RealisedGain(
            reads=3, files_before=10, files_after=1, gain_seconds=0.9, predicted_seconds=1.0
        )
        await store.realise(item.number, gain)
        (record,) = await store.work_since(NOW, 10)
        assert (record.state, record.body.gain) == ("done", gain)
        assert await store.work_since(later + SECOND, 10) == []

    holds(law)


def test_callers_get_only_work_on_tables_that_they_may_write_to(holds: Holds) -> None:
    mine = Names(below=frozenset(["mine."]))

    async def law(store: SqlWorkStore) -> None:
        await decide(store, work("other.t", "a"), work("mine.t", "a"), work("mine.u", "a"))

        narrow = await store.claim(claim("w", "mine.u"), mine, NOW, NOW + MINUTE)
        item = await store.claim(claim("w", "*"), mine, NOW, NOW + MINUTE)
        none = await store.claim(claim("w", "other.*"), mine, NOW, NOW + MINUTE)
        theirs = await store.claim(claim("w", "other.*"), ALL, NOW, NOW + MINUTE)

        assert theirs is not None
        tables = [one and one.table for one in (narrow, item, none)]
        assert tables == ["mine.u", "mine.t", None]
        with pytest.raises(ClaimLostError):
            await store.update(theirs.claim_id, mine, DONE, NOW, NOW)
        assert {one.table for one in await store.page(NEWEST, 10, mine)} == {"mine.t", "mine.u"}
        assert [one.table for one in await store.page(NEWEST, 10, ALL, "other.t")] == ["other.t"]

    holds(law)


def test_equal_skips_are_counted_within_a_day_and_old_receipts_are_forgotten(
    holds: Holds,
) -> None:
    quiet = Skip(table="t", reason="quiet", text="written to lately")

    async def law(store: SqlWorkStore) -> None:
        for hour in range(3):
            now = NOW + timedelta(hours=hour)
            other = Skip(table="u", reason="quiet", text=f"hour {hour}")
            await decide(store, work("t", "ds=1"), skips=[quiet, other], now=now)
        await decide(store, skips=[quiet], now=NOW + DAY + SECOND)

        receipts = await store.page(NEWEST, 10, ALL)
        shown = [(one.table, one.state, one.times, one.text) for one in receipts]
        assert shown == [
            ("t", "left_alone", 1, "written to lately"),
            ("u", "left_alone", 3, "hour 2"),
            ("t", "left_alone", 3, "written to lately"),
        ]
        assert receipts[2].first_at == NOW
        assert await store.purge(NOW + timedelta(hours=2), 1_000) == 0
        assert await store.purge(NOW + timedelta(hours=3), 1_000) == 2
        assert await store.purge(NOW, 0) == 1

    holds(law)


def test_work_that_somebody_asked_for_comes_first_and_stays_until_it_is_taken(
    holds: Holds,
) -> None:
    async def law(store: SqlWorkStore) -> None:
        await decide(store, work("s", "ds=1"), work("t", "ds=1"), work("t", "ds=2"), work("t", "x"))
        taken = await store.claim(claim("w", "s"), ALL, NOW, NOW + MINUTE)
        assert taken is not None

        # It takes the place of work on the same partitions, but not of what a worker has.
        count = await store.request([work("t", "ds=1", "ds=2")], NOW)
        none = await store.request([work("s", "ds=1")], NOW)
        await decide(store, work("t", "ds=2"), work("u", "ds=1"))

        assert (count, none) == (1, 0)
        items = [await store.claim(claim("w", "*"), ALL, NOW, NOW + MINUTE) for _ in range(3)]
        assert [one and (one.table, one.folders) for one in items] == [
            ("t", ["ds=1", "ds=2"]),
            ("u", ["ds=1"]),
            None,
        ]
        assert [(one.worker, one.pattern) for one in await store.maintainers()] == [("w", "*")]

    holds(law)


def test_a_worker_is_seen_when_it_asks_and_whenever_it_renews_the_lease_of_its_work(
    holds: Holds,
) -> None:
    async def law(store: SqlWorkStore) -> None:
        await decide(store, work("t", "ds=1"))
        item = await store.claim(claim("w", "*"), ALL, NOW, NOW + MINUTE)
        assert item is not None
        (before,) = await store.maintainers()

        renewal = ClaimUpdate(state="running")
        running = await store.update(
            item.claim_id, ALL, renewal, NOW + SECOND, NOW + SECOND + MINUTE
        )

        (after,) = await store.maintainers()
        assert (before.seen_at, after.seen_at) == (NOW, NOW + SECOND)
        assert running.lease_until == NOW + SECOND + MINUTE

    holds(law)


def test_work_that_was_asked_for_is_withdrawn_until_a_worker_has_it(holds: Holds) -> None:
    async def law(store: SqlWorkStore) -> None:
        await store.request([work("t", "ds=1"), work("t", "ds=2")], NOW)
        first, second = reversed(await store.page(NEWEST, 10, ALL, states=("waiting",)))
        assert (first.reason, second.reason) == ("requested", "requested")
        item = await store.claim(claim("w", "*"), ALL, NOW, NOW + MINUTE)
        assert item is not None

        for number in (first.number, second.number):
            assert await store.withdraw("other", NOW, number) == 0
        assert [await store.withdraw("t", NOW, one.number) for one in (first, second)] == [0, 1]

        assert [one.state for one in await store.page(NEWEST, 10, ALL)] == ["running"]
        assert item.number == first.number

        # Without a number, all that waits; but neither other tables nor what a round decided.
        await decide(store, work("t", "ds=3"), work("u", "ds=1"))
        await store.request([work("t", "ds=4"), work("t", "ds=5")], NOW)
        await store.request([work("u", "ds=2")], NOW)
        assert [await store.withdraw("t", NOW) for _ in range(2)] == [2, 0]
        waiting = await store.page(NEWEST, 10, ALL, states=("waiting",))
        assert {(one.table, *one.folders) for one in waiting} == {
            ("t", "ds=3"),
            ("u", "ds=1"),
            ("u", "ds=2"),
        }

    holds(law)


def test_nobody_gets_work_while_all_maintenance_is_paused(
    database_url: sa.URL,
) -> None:
    async def law(database: Database) -> None:
        store, policies = SqlWorkStore(database), SqlPolicyStore(database, lambda: NOW)
        await decide(store, work("t", "ds=1"))
        await store.request([work("u", "ds=1")], NOW)
        budget = (await policies.budget()).info

        await policies.set_budget(budget.model_copy(update={"pause": True}), None)
        assert await store.claim(claim("w", "*"), ALL, NOW, NOW + MINUTE) is None
        assert [one.worker for one in await store.maintainers()] == ["w"]
        await policies.set_budget(budget, None)

        assert await store.claim(claim("w", "*"), ALL, NOW, NOW + MINUTE) is not None

    on_database(database_url, law)


def test_work_waits_in_the_order_in_which_workers_get_it(holds: Holds) -> None:
    async def law(store: SqlWorkStore) -> None:
        await decide(store, *(work("a.t", f"ds={at}") for at in range(5)), work("b.t", "ds=9"))
        await store.request([work("a.t", "ds=7"), work("a.t", "ds=8")], NOW)
        asked, after = [], 0
        while page := await store.waiting(after, 3, ALL):
            asked += [one.folders[0] for one in page]
            after = turn_of(page[-1])
            assert page.more == (len(asked) < 8)
        of_one = await store.waiting(0, 10, ALL, "b.t")
        hidden = await store.waiting(0, 10, Names(exact=frozenset({"b.t"})))
        given = [await store.claim(claim("w"), ALL, NOW, NOW + MINUTE) for _ in range(8)]

        assert asked == ["ds=7", "ds=8", *(f"ds={at}" for at in range(5)), "ds=9"]
        assert [one.folders[0] for one in given if one is not None] == asked
        assert [one.folders for one in of_one] == [one.folders for one in hidden] == [["ds=9"]]

    holds(law)


def test_all_work_that_has_ended_is_counted_and_added_up(holds: Holds) -> None:
    async def law(store: SqlWorkStore) -> None:
        skips = [Skip(table="c.t", reason="quiet", text="t")]
        new = [*(work("a.t", f"ds={at}") for at in range(40)), work("b.t", "ds=0")]
        await decide(store, *new, skips=skips)
        none = await store.sums(NOW - DAY, ALL)
        ends = ("gave_up", "failed", *["done"] * 30)
        for at, state in enumerate(ends):
            item = await store.claim(claim("w", "a.t"), ALL, NOW, NOW + MINUTE)
            assert item is not None
            end = DONE if state == "done" else ClaimUpdate(state=state, text="it ended")
            moment = NOW + at * MINUTE
            await store.update(item.claim_id, ALL, end, moment, moment)
        gain = RealisedGain(
            reads=3, files_before=10, files_after=1, gain_seconds=0.25, predicted_seconds=1.0
        )
        await store.realise(item.number, gain)

        sums, counts = await store.sums(NOW, ALL), await store.counts(ALL)
        late = await store.sums(NOW + 31 * MINUTE, ALL, "a.t")
        events = await store.events(NOW, 20, ALL)
        mine = Names(exact=frozenset({"b.t", "c.t"}))

        assert (none.done, none.core_seconds, none.gain_seconds) == (0, 0.0, 0.0)
        assert (sums.done, sums.gave_up, sums.failed, sums.measurements) == (30, 1, 1, 1)
        assert (sums.files_before, sums.files_after, sums.bytes_before) == (300, 30, 27_000)
        # What gave up or failed reported no cost.
        assert (sums.core_seconds, sums.predicted_seconds) == (180.0, 120.0)
        assert sums.gain_seconds == 29 * PREDICTION.gain_seconds + 0.25
        assert (late.done, late.core_seconds) == (1, 6.0)
        assert counts == {
            "waiting": 9,
            "running": 0,
            "done": 30,
            "gave_up": 1,
            "failed": 1,
            "left_alone": 1,
        }
        assert sum((await store.counts(mine)).values()) == 2
        assert sum((await store.counts(ALL, "b.t")).values()) == 1
        assert [one.at for one in events] == [NOW + at * MINUTE for at in range(31, 11, -1)]
        assert (events.more, events[0].text, events[0].core_seconds) == (True, DONE.text, 6.0)
        assert await store.events(NOW, 20, mine) == []
        last = await store.events(NOW, 40, ALL)
        assert (last.more, last[-1].state, last[-1].core_seconds) == (False, "gave_up", 0.0)

    holds(law)
