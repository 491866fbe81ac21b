"""Tasks that share the limit of a store come close to it, with few refused requests."""

from __future__ import annotations

import heapq
import random
from collections import deque
from dataclasses import dataclass, field
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.laws import examples
from windrow_core.files.objects.pacing import Pace

LATENCY_S = 0.02
IN_FLIGHT = 64


@dataclass
class Task:
    """A task that keeps some requests in flight, and repeats refused ones."""

    left: int
    pace: Pace = field(default_factory=Pace)
    # For each request that may be sent, how often it was refused.
    ready: deque[int] = field(default_factory=lambda: deque([0] * IN_FLIGHT))
    is_sending: bool = False


@dataclass
class Outcome:
    """The outcome of all requests."""

    seconds: float
    sent: int
    answered: int


def simulated(
    tasks: list[Task], limit: float, burst: float, refusal_s: float = LATENCY_S
) -> Outcome:
    """Send all requests to a store with a token bucket, in simulated time."""
    chance, number = random.Random(7), count()
    events: list[tuple[float, int, str, Task, int, float]] = []
    tokens, refilled_at, now, sent, answered = burst, 0.0, 0.0, 0, 0

    def at(when: float, what: str, task: Task, refused: int = 0, sent_at: float = 0.0) -> None:
        heapq.heappush(events, (when, next(number), what, task, refused, sent_at))

    def send_next(task: Task) -> None:
        while not task.is_sending and task.ready and (task.ready[0] or task.left):
            refused = task.ready.popleft()
            task.left -= not refused
            task.is_sending = True
            at(now + task.pace.delay(now), "send", task, refused)

    for task in tasks:
        send_next(task)
    while events:
        now, _, what, task, refused, sent_at = heapq.heappop(events)
        if what == "send":
            task.is_sending = False
            sent += 1
            tokens = min(burst, tokens + (now - refilled_at) * limit)
            refilled_at = now
            is_taken = tokens >= 1
            tokens -= is_taken
            if is_taken:
                at(now + LATENCY_S, "answer", task, refused, now)
            else:
                at(now + refusal_s, "refusal", task, refused, now)
        elif what == "answer":
            task.pace.answered(now)
            answered += 1
            task.ready.append(0)
        elif what == "refusal":
            task.pace.objected(sent_at, now)
            pause = chance.uniform(0, min(5.0, 0.1 * 2**refused))
            at(now + pause, "again", task, refused + 1)
        else:
            task.ready.appendleft(refused)
        send_next(task)
    return Outcome(now, sent, answered)


@pytest.mark.parametrize("burst_s", [0.1, 1.0])
@pytest.mark.parametrize(("tasks", "limit", "files"), [(4, 200, 20_000), (1, 200, 5_000)])
def test_tasks_use_nearly_all_of_a_limit_and_repeat_few_requests(
    tasks: int, limit: int, files: int, burst_s: float
) -> None:
    outcome = simulated([Task(files // tasks) for _ in range(tasks)], limit, limit * burst_s)

    assert outcome.answered == files
    assert outcome.answered / outcome.seconds > 0.9 * limit
    assert outcome.sent < 1.05 * files


def test_objections_before_the_first_answers_cost_a_short_read_little() -> None:
    outcome = simulated([Task(120)], limit=100, burst=10, refusal_s=0.001)

    assert outcome.seconds < 4
    assert outcome.sent < 2 * 120


def test_a_store_that_never_objects_is_asked_as_quickly_as_it_answers() -> None:
    outcome = simulated([Task(10_000)], limit=1e9, burst=1e9)

    assert outcome.sent == 10_000
    assert outcome.seconds == pytest.approx(10_000 / IN_FLIGHT * LATENCY_S, rel=0.02)


@examples(50)
@given(st.floats(0.5, 500), st.lists(st.floats(0, 0.1), min_size=1, max_size=200))
def test_a_bound_is_never_exceeded(most_per_s: float, pauses: list[float]) -> None:
    pace, now, sent = Pace(most_per_s), 100.0, []
    for pause in pauses:
        now += pause
        now += pace.delay(now)
        sent.append(now)
        pace.answered(now)

    for first in range(len(sent)):
        after = [at for at in sent[first:] if at <= sent[first] + 1]
        assert len(after) <= most_per_s + 1.001


def test_requests_sent_before_the_rate_was_lowered_do_not_lower_it_again() -> None:
    pace = Pace()
    for at in range(100):
        pace.delay(at / 100)
        pace.answered(at / 100)
    pace.objected(0.99, 1.0)
    lowered = pace.rate

    for _ in range(50):
        pace.objected(0.99, 1.01)

    assert lowered == pace.rate
    pace.objected(1.02, 1.04)
    assert lowered is not None
    assert pace.rate is not None
    assert lowered / 2 <= pace.rate < lowered
