"""Bodies that a coordinator holds at a time stay within their budget."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack

from hypothesis import given
from hypothesis import strategies as st
from starlette.types import Message

from windrow_service.api.body_budget import FREE_BYTES, ArrivingBody, BodyBudget
from windrow_service.api.errors import BodiesFullError

MAX_BYTES = 10 * FREE_BYTES
# Which body, how many bytes arrive of it, and whether these are its last.
PARTS = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 6 * FREE_BYTES), st.integers(0, 4).map(bool)),
    max_size=40,
)


async def arrive(body: ArrivingBody, count_bytes: int, *, more: bool) -> bool:
    """Let a part arrive; return whether the body is accepted."""

    async def receive() -> Message:
        return {"type": "http.request", "body": b"x" * count_bytes, "more_body": more}

    try:
        await body.part(receive)
    except BodiesFullError:
        return False
    return True


@given(PARTS)
def test_bodies_stay_within_the_budget_and_only_a_lack_of_room_refuses_one(
    parts: list[tuple[int, int, bool]],
) -> None:
    async def body() -> None:
        budget = BodyBudget(MAX_BYTES)
        bodies: dict[int, ArrivingBody] = {}
        seen: dict[int, int] = {}
        ended: set[int] = set()
        with ExitStack() as stack:
            for number, count_bytes, more in parts:
                if number in ended:
                    continue
                if number not in bodies:
                    bodies[number] = stack.enter_context(budget.body())
                sums = {one: max(each - FREE_BYTES, 0) for one, each in seen.items()}
                accepted = await arrive(bodies[number], count_bytes, more=more)
                seen[number] = seen.get(number, 0) + count_bytes
                sums[number] = max(seen[number] - FREE_BYTES, 0)
                if sum(sums.values()) <= MAX_BYTES:
                    assert accepted
                if not accepted or not more:
                    ended.add(number)
                held = [one.counted_bytes for one in bodies.values()]
                assert sum(held) <= MAX_BYTES
                for one, each in bodies.items():
                    # All of a body counts, or it is refused and none of it does.
                    assert each.counted_bytes in (0, sums.get(one, 0))
        assert all(one.counted_bytes == 0 for one in bodies.values())
        with budget.body() as whole:
            assert await arrive(whole, MAX_BYTES + FREE_BYTES, more=False)

    asyncio.run(body())


def test_a_body_that_has_arrived_is_not_refused_any_more() -> None:
    async def body() -> None:
        budget = BodyBudget(MAX_BYTES)
        with budget.body() as first, budget.body() as second:
            assert await arrive(first, MAX_BYTES, more=False)
            assert not await arrive(second, 3 * FREE_BYTES, more=True)
            assert first.counted_bytes == MAX_BYTES - FREE_BYTES

    asyncio.run(body())


def test_the_slowest_body_is_refused_even_while_it_waits_for_its_next_part() -> None:
    async def body() -> None:
        budget = BodyBudget(MAX_BYTES)
        never = asyncio.Event()

        async def receive() -> Message:
            await never.wait()
            raise AssertionError

        with budget.body() as stalled, budget.body() as quick:
            assert await arrive(stalled, MAX_BYTES, more=True)
            await asyncio.sleep(0.01)
            waiting = asyncio.ensure_future(stalled.part(receive))
            await asyncio.sleep(0)
            assert await arrive(quick, 2 * MAX_BYTES // 2, more=False)
            outcome = await asyncio.gather(waiting, return_exceptions=True)
            assert isinstance(outcome[0], BodiesFullError)

    asyncio.run(body())
