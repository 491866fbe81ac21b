"""What the warm-up says about tasks that did not run on the hosts of their caches."""

from __future__ import annotations

import pytest

from windrow_jobs.reach import Reach
from windrow_jobs.warming import Warmed

BUSY = "Spark ran tasks for b on a, as no slot of b was free"


def stray(met: str | None = "a", away: str = BUSY) -> Warmed:
    return Warmed(0, 1, away, met)


def reach(
    *hosts: str, master: str = "spark://m:7077", local: bool = False, elastic: bool = False
) -> Reach:
    return Reach(master=master, is_local=local, is_elastic=elastic, hosts=frozenset(hosts))


def test_a_local_session_says_where_the_command_can_run_instead() -> None:
    here = reach(master="local[2]", local=True)

    assert not here.may_run_on("a")
    (reason,) = here.reasons({"b": [stray()], "c": [stray()]})
    assert "master local[2]" in reason
    assert "the caches of b, c: run the command on each of those hosts" in reason
    assert "or with the master of a cluster" in reason
    assert "locality" not in reason


def test_a_local_session_without_a_cache_says_both() -> None:
    first, second = reach(master="local", local=True).reasons({"b": [stray(None, "no folder")]})
    assert "run the command" in first
    assert second == "no folder"


def test_hosts_without_executors_are_named_with_the_remedy() -> None:
    few = reach("a")

    assert few.may_run_on("a")
    assert not few.may_run_on("b")
    (reason,) = few.reasons({"b": [stray()], "c": [stray()]})
    assert "no executor runs on b, c" in reason
    assert "start executors there (these tasks ran on a)" in reason
    assert "--host" in reason


def test_many_hosts_are_counted() -> None:
    (reason,) = reach("a").reasons({f"h{number}": [stray()] for number in range(9)})
    assert "h0, h1, h2, h3, h4 and 4 more" in reason


@pytest.mark.parametrize("elastic", [False, True])
def test_tasks_of_busy_hosts_are_repeated_and_reported_as_such(elastic: bool) -> None:
    both = reach("a", "b", elastic=elastic)
    assert both.may_run_on("b")
    assert both.may_run_on("c") == elastic
    assert both.reasons({"b": [stray()]}) == [BUSY]


def test_an_executor_without_a_cache_is_the_only_reason_that_it_gives() -> None:
    reasons = reach("a").reasons({"b": [stray(None, "no folder"), stray(None, "no folder")]})
    assert reasons == ["no folder"]


def test_nothing_is_said_if_all_tasks_ran_on_their_hosts() -> None:
    assert reach("a").reasons({}) == []
    assert reach(master="local", local=True).reasons({}) == []
