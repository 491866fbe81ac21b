"""Replicas under load are killed or replaced, and PostgreSQL restarts: each change is made once."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.support.benchmarks import load_benchmark

soak = load_benchmark("soak")

_PACE = 4.0


@pytest.fixture(scope="module")
def shared() -> Iterator[soak.Cluster]:
    """Two replicas behind a front, with a PostgreSQL and a Redis of their own."""
    with soak.cluster(2) as shared:
        yield shared


def assert_each_change_once(found: soak.Soaked) -> None:
    assert found.failed == []
    assert found.told.lost == []
    assert found.told.doubled == []
    assert found.tracebacks == 0
    for done in found.done.values():
        assert min(done.made[kind] for kind in found.paces) > 0, done


@pytest.mark.nightly
def test_killed_replicas_and_a_restarted_database_lose_no_change_and_double_none(
    shared: soak.Cluster,
) -> None:
    found = soak.soak(shared, 12.0, measured_s=2.0, kills=2, restarts=1)

    assert_each_change_once(found)
    assert found.events == {"killed": 2, "database restarted": 1}


def test_replacing_both_replicas_under_load_fails_no_call_of_a_client(shared: soak.Cluster) -> None:
    found = soak.roll(shared, 4.0, _PACE)

    assert_each_change_once(found)
    assert found.events == {"replaced": 2}


def test_an_account_names_missing_changes_and_changes_that_nobody_made(
    shared: soak.Cluster,
) -> None:
    with shared.called("a", dict.fromkeys(soak.KINDS, _PACE)) as done:
        time.sleep(2.0)
    n = dict(done.made)
    told = soak.account(shared.database_url, "a", done)
    assert (told.lost, told.doubled) == ([], [])

    done.made = {kind: count + 1 for kind, count in n.items()}
    lost = soak.account(shared.database_url, "a", done).lost
    done.made = {kind: count - 1 for kind, count in n.items()}
    doubled = soak.account(shared.database_url, "a", done).doubled

    def records(more: int) -> set[str]:
        return {
            f"snapshot created a_published {n['publications'] + more}",
            f"snapshot created a_refreshed {n['refreshes'] + more}",
            f"table created a_new_{n['registrations'] + more}",
            f"cache_rule created steady a-{n['rules'] + more}",
            f"token created a-{n['tokens'] + more}",
            f"token deleted a-{n['tokens'] + more}",
            f"token a-{n['tokens'] + more} revoked",
            f"write created a_written {n['writes'] + more:032x}",
            f"write {n['writes'] + more:032x} undone",
            f"rule a-{n['rules'] + more}",
            f"a_new_{n['registrations'] + more}",
        }

    assert records(1) <= set(lost)
    assert records(0) <= set(doubled)


def test_only_figures_that_keep_growing_are_not_flat() -> None:
    samples = [
        soak.Sample(
            at_s=float(second),
            figures={
                "MB of a replica": 150.0 + second,
                "rows of plans": 400.0 + second % 7,
                "rows of audit": 2.0 * second,
                "rows of tokens": 1_000.0 * second,
            },
        )
        for second in range(0, 900, 5)
    ]

    found = {trend.name: trend for trend in soak.trends(samples, 180.0, requests=5_000)}

    assert {name: trend.holds for name, trend in found.items()} == {
        "MB of a replica": False,
        "rows of plans": True,
        "rows of audit": True,
        "rows of tokens": False,
    }
    assert round(found["MB of a replica"].a_minute) == 60
