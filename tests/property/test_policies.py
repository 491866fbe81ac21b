"""Of the policies that apply to a table, the most specific one that sets a field decides."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.laws import examples
from windrow_core.models import WINDOW_PATTERN, EffectivePolicy, Policy
from windrow_service.usecases.maintenance.errors import InvalidPolicyError
from windrow_service.usecases.maintenance.policies import applies, maintenance_of
from windrow_service.usecases.maintenance.windows import is_open, require_window

utc = partial(datetime, tzinfo=timezone.utc)
NOW = datetime(2026, 11, 21, tzinfo=timezone.utc)
_PART = st.sampled_from(["a", "b", "ab"])
_TABLES = st.lists(_PART, min_size=1, max_size=3).map(".".join)
_PATTERNS = st.one_of(
    _TABLES,
    st.lists(_PART, min_size=1, max_size=2).map(lambda parts: ".".join(parts) + ".*"),
    st.just("*"),
)
_FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "enabled": st.booleans(),
    "target_file_size": st.none() | st.integers(1, 9),
    "min_files": st.none() | st.integers(2, 9),
    "min_gain": st.none() | st.floats(0, 9),
    "reads_per_day": st.none() | st.floats(0, 9),
    "min_age_seconds": st.none() | st.integers(0, 9),
    "windows": st.none() | st.just(["22:00-06:00"]),
    "max_share": st.none() | st.floats(0.5, 1),
    "filter": st.none() | st.just("ds > 'a'"),
    "keep_days": st.none() | st.integers(1, 9),
    "keep_by": st.none() | st.just("ds"),
    "keep_zone": st.none() | st.just("Europe/Berlin"),
    "exempt_folders": st.none() | st.just(["ds=b"]),
    "readers_may_see_both": st.none() | st.booleans(),
    "pack": st.none() | st.booleans(),
    "pack_max_bytes": st.none() | st.integers(1, 9),
    "pack_rights_are_stated": st.none() | st.booleans(),
}
_TIMES = st.integers(0, 24 * 60 - 1).map(lambda minutes: f"{minutes // 60:02}:{minutes % 60:02}")


def policy(pattern: str, values: dict[str, Any]) -> Policy:
    return Policy(pattern=pattern, created_at=NOW, updated_at=NOW, **values)


_POLICIES = st.lists(
    st.builds(policy, _PATTERNS, st.fixed_dictionaries(_FIELDS)),
    max_size=6,
    unique_by=lambda one: one.pattern,
)


def matches(pattern: str, name: str) -> bool:
    return re.fullmatch(re.escape(pattern).replace(r"\*", ".+"), name) is not None


@examples(100)
@given(_PATTERNS, _TABLES)
def test_a_policy_applies_to_the_names_that_its_pattern_describes(pattern: str, table: str) -> None:
    assert applies(pattern, table) == matches(pattern, table)


@examples(200)
@given(_POLICIES, _TABLES, st.randoms(use_true_random=False))
def test_each_field_is_that_of_the_most_specific_policy_which_sets_it(
    policies: list[Policy], table: str, random: Any
) -> None:
    parts = table.split(".")
    # From the table's own name to the most general pattern.
    chain = [table, *(f"{'.'.join(parts[:n])}.*" for n in range(len(parts) - 1, 0, -1)), "*"]
    by_pattern = {one.pattern: one for one in policies}
    shuffled = list(policies)
    random.shuffle(shuffled)

    outcome = maintenance_of(table, shuffled)

    assert outcome == maintenance_of(table, policies)
    for name, field in EffectivePolicy.model_fields.items():
        setters = [
            pattern
            for pattern in chain
            if pattern in by_pattern and getattr(by_pattern[pattern], name) is not None
        ]
        value = getattr(outcome.policy, name)
        if setters:
            assert outcome.sources[name] == setters[0]
            assert value == getattr(by_pattern[setters[0]], name)
        else:
            assert name not in outcome.sources
            assert value == field.get_default()


def test_nothing_is_maintained_without_a_policy_that_says_so() -> None:
    assert not maintenance_of("sales.events", []).policy.enabled
    off = policy("sales.events", dict.fromkeys(_FIELDS) | {"enabled": False})
    on = policy("sales.*", dict.fromkeys(_FIELDS) | {"enabled": True})

    assert maintenance_of("sales.orders", [on, off]).policy.enabled
    assert not maintenance_of("sales.events", [on, off]).policy.enabled
    # What lies below `sales` is not `sales`.
    assert not maintenance_of("sales", [on]).policy.enabled


@examples(100)
@given(_TIMES, _TIMES, st.integers(0, 24 * 60 - 1))
def test_a_window_contains_its_beginning_and_not_its_end(begin: str, end: str, now: int) -> None:
    window = f"{begin}-{end}"
    assert re.fullmatch(WINDOW_PATTERN, window)
    if begin == end:
        with pytest.raises(InvalidPolicyError, match="leave windows out"):
            require_window(window)
        return

    def minute(text: str) -> int:
        hours, _, minutes = text.partition(":")
        return 60 * int(hours) + int(minutes)

    length = (minute(end) - minute(begin)) % (24 * 60)
    inside = (now - minute(begin)) % (24 * 60) < length
    require_window(window)
    assert is_open([window], NOW + timedelta(minutes=now)) == inside
    assert is_open([window, "00:00-23:59"], NOW + timedelta(hours=1))


def test_a_window_without_a_zone_is_in_utc_and_follows_the_clock_of_its_zone() -> None:
    berlin = "22:00-06:00 Europe/Berlin"
    require_window(berlin)
    for at, in_berlin, in_utc in (
        (utc(2026, 1, 15, 21, 0), True, False),
        (utc(2026, 7, 15, 20, 0), True, False),
        (utc(2026, 1, 15, 5, 30), False, True),
        (utc(2026, 7, 15, 3, 59), True, True),
    ):
        assert is_open([berlin], at) == in_berlin, at
        assert is_open(["22:00-06:00"], at) == in_utc, at
        assert is_open([berlin], at.astimezone(ZoneInfo("Asia/Tokyo"))) == in_berlin
    assert is_open([], NOW)
    with pytest.raises(InvalidPolicyError, match="no time zone 'Europe/Atlantis'"):
        require_window("22:00-06:00 Europe/Atlantis")
