"""Leases are renewed while work runs, and decide when it ends early."""

from __future__ import annotations

import asyncio

import pytest

from windrow_service.runs import leases
from windrow_service.runs.leases import NamedTasks, renewed
from windrow_service.usecases.errors import OutcomeUnknownError, StoreUnavailableError


class LostError(Exception):
    """Another runner has the lease."""


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "RENEW_S", 0.001)


def test_a_lease_is_renewed_until_the_work_ends_and_never_after() -> None:
    async def run() -> tuple[str, int, int]:
        count = 0
        often = asyncio.Event()

        async def renew() -> None:
            nonlocal count
            count += 1
            if count == 3:
                often.set()

        async def work() -> str:
            await often.wait()
            return "done"

        result = await renewed("work", work(), renew)
        seen = count
        await asyncio.sleep(0.01)
        return result, seen, count

    result, seen, later = asyncio.run(run())

    assert result == "done"
    assert seen == later >= 3


@pytest.mark.parametrize(
    "away", [StoreUnavailableError("restarting", 1, True), OutcomeUnknownError()]
)
def test_work_continues_while_the_database_is_unavailable(away: Exception) -> None:
    async def run() -> int:
        failed = 0
        back = asyncio.Event()

        async def renew() -> None:
            nonlocal failed
            failed += 1
            if failed == 3:
                back.set()
            raise away

        async def work() -> int:
            await back.wait()
            return failed

        return await renewed("work", work(), renew)

    assert asyncio.run(run()) >= 3


def test_a_lost_lease_stops_the_work_before_the_loss_is_reported() -> None:
    stopped = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.append(True)

    async def renew() -> None:
        raise LostError

    with pytest.raises(LostError):
        asyncio.run(renewed("work", work(), renew))
    assert stopped == [True]


def test_a_runner_that_is_cancelled_stops_its_work() -> None:
    stopped = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.append(True)

    async def renew() -> None:
        pass

    async def run() -> None:
        runner = asyncio.create_task(renewed("work", work(), renew))
        await asyncio.sleep(0.01)
        runner.cancel()
        await asyncio.gather(runner, return_exceptions=True)

    asyncio.run(run())

    assert stopped == [True]


def test_a_task_is_forgotten_when_it_ends_but_not_the_one_that_took_its_name() -> None:
    async def run() -> None:
        tasks = NamedTasks[str]()
        go_on = asyncio.Event()

        async def first() -> str:
            return "first"

        async def second() -> str:
            await go_on.wait()
            return "second"

        ended = tasks.start("name", first())
        running = tasks.start("name", second())
        assert await ended == "first"
        assert tasks.get("name") is running
        go_on.set()
        assert await running == "second"
        assert tasks.get("name") is None
        assert len(tasks) == 0

    asyncio.run(run())


def test_closing_stops_every_task() -> None:
    async def run() -> list[bool]:
        tasks = NamedTasks[None]()

        async def wait() -> None:
            await asyncio.Event().wait()

        started = [tasks.start(name, wait()) for name in ("a", "b")]
        assert sorted(tasks) == ["a", "b"]
        await tasks.aclose()
        return [task.cancelled() for task in started]

    assert asyncio.run(run()) == [True, True]
