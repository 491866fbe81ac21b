"""`windrow.Client`'s calls about caches, against a real coordinator."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import httpx
import pytest

import windrow
from windrow_calls.errors import (
    CacheSqlError,
    InvalidArgumentError,
    InvalidRequestError,
    NotFoundError,
)

RECENT = "ds >= '2026-11-02'"
TREE = {"op": "ge", "column": "ds", "value": "2026-11-02"}


def test_caching_the_same_filter_twice_makes_one_rule(client: windrow.Client, events: str) -> None:
    ends = datetime.now(timezone.utc) + timedelta(days=1)

    first = client.cache_table(events, RECENT)
    again = client.cache_table(events, f"{RECENT} -- again", expires_at=ends, max_bytes="5GB")
    tree = client.cache_table(events, TREE)
    named = client.cache_table(events, RECENT, rule="recent")

    assert first.rule == again.rule
    assert (again.expires_at, again.max_bytes) == (ends, 5 * 2**30)
    assert len({again.rule, tree.rule, named.rule}) == 3
    assert client.cache_rules(events) == sorted([again, tree, named], key=lambda one: one.rule)
    assert [one for one in client.cache_rules() if one.table == events] == client.cache_rules(
        events
    )


def test_drop_cache_deletes_one_rule_or_the_rules_of_a_filter_or_all(
    client: windrow.Client, events: str
) -> None:
    for rule, filter in (("a", RECENT), ("b", RECENT), ("c", "ds IS NULL"), ("d", TREE)):
        client.cache_table(events, filter, rule=rule)

    client.drop_cache(events, "a")
    with pytest.raises(NotFoundError, match="no cache rule 'a'"):
        client.drop_cache(events, "a")
    by_filter = client.cache_sql(f"DROP CACHE {events} WHERE ds>='2026-11-02'")
    with pytest.raises(CacheSqlError, match="exactly this filter"):
        client.cache_sql(f"DROP CACHE {events} WHERE {RECENT}")
    rest = client.cache_sql(f"DROP CACHE {events}")

    assert [one.rule for one in by_filter.rules] == ["b"]
    assert [one.rule for one in rest.rules] == ["c", "d"]
    assert client.cache_rules(events) == []


def test_figures_and_workers_are_returned(
    client: windrow.Client, http: httpx.Client, events: str
) -> None:
    beat = {"host": "h", "capacity_bytes": 10, "used_bytes": 0}
    workers = [f"{events}-{number:03d}" for number in range(101)]
    for worker in workers:
        http.put(f"/workers/{worker}", json=beat).raise_for_status()
    client.cache_table(events, RECENT)

    # There are more workers than fit on a page.
    assert [one.worker_id for one in client.workers() if events in one.worker_id] == workers
    assert client.cache(events).cacheable_files == 4
    for worker in workers:
        client.forget_worker(worker)
    assert not any(events in one.worker_id for one in client.workers())


def test_invalid_arguments_are_reported_by_the_client_or_the_coordinator(
    client: windrow.Client, events: str
) -> None:
    with pytest.raises(InvalidArgumentError, match="timezone"):
        client.cache_table(events, RECENT, expires_at=datetime(2099, 1, 1))  # noqa: DTZ001
    with pytest.raises(InvalidRequestError, match="'id' cannot be in a cache rule"):
        client.cache_table(events, "id = 5")
    with pytest.raises(InvalidArgumentError, match="not the name of a rule: use letters"):
        client.cache_table(events, RECENT, rule="two words")
    with pytest.raises(InvalidArgumentError, match="not the name of a rule"):
        client.cache_table(events, RECENT, rule="../../other/cache-rules/x")
    with pytest.raises(CacheSqlError, match="write DROP CACHE"):
        client.cache_sql(f"UNCACHE TABLE {events}")
