"""Grants allow what their patterns say, one by one, and nothing else."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow_core.models import MAX_GRANTS, MAX_TOKEN_DAYS, TABLE_NAME_PATTERN, WORKER_ID_PATTERN
from windrow_service.usecases.access import grants
from windrow_service.usecases.access.errors import InvalidTokenError
from windrow_service.usecases.access.grants import SCOPES, compiled, grant_of, grants_on
from windrow_service.usecases.access.tokens import MAX_DAYS

_PART = st.sampled_from(["a", "b", "ab", "A", "a-b", "a_b"])
_TABLES = st.lists(_PART, min_size=1, max_size=3).map(".".join)
_PATTERNS = st.one_of(
    _TABLES,
    st.lists(_PART, min_size=1, max_size=2).map(lambda parts: ".".join(parts) + ".*"),
    st.just("*"),
)
_GRANTS = st.tuples(st.sampled_from(sorted(SCOPES)), _PATTERNS).map(":".join)


def matches(pattern: str, name: str) -> bool:
    text = re.escape(pattern).replace(r"\*", ".+")
    return re.fullmatch(text, name) is not None


@given(st.lists(_GRANTS, max_size=6), st.sampled_from(sorted(SCOPES)), _TABLES)
def test_a_scope_is_granted_if_one_of_the_grants_gives_it(
    granted: list[str], scope: str, name: str
) -> None:
    allowed = False
    for grant in granted:
        given_scope, pattern = grant.split(":")
        same_kind = (scope == "worker") == (given_scope == "worker") or pattern == "*"
        allowed |= same_kind and scope in SCOPES[given_scope] and matches(pattern, name)

    names = compiled(tuple(granted)).of(scope)

    assert (name in names) == allowed
    assert not allowed or names


@given(st.lists(_GRANTS, max_size=6), _TABLES)
def test_the_grants_on_a_table_are_all_that_allow_something_on_it(
    granted: list[str], name: str
) -> None:
    on_everything = [one for one in granted if one.endswith(":*") and one != "worker:*"]
    on_it = set(granted).intersection(grants_on(name))

    assert bool(on_it or on_everything) == (name in compiled(tuple(granted)).of("read"))


@given(_GRANTS)
def test_a_grant_is_read_as_it_is_written(grant: str) -> None:
    assert ":".join(grant_of(grant)) == grant


@pytest.mark.parametrize(
    "text",
    [
        "",
        "root",
        "read:",
        "Read:a",
        "read:a*",
        "read:*.a",
        "read:**",
        "read:a.*.b",
        "read:.*",
        "read:a b",
        "read:a.b.c.d",
        "read:a,b",
        "read:a\n",
        "read:" + "a" * 300,
        "worker:a b",
        "read:a:b",
        "*",
        "*:*",
        "admin:a/b",
        "read:%",
    ],
)
def test_text_that_is_not_a_grant_is_refused(text: str) -> None:
    with pytest.raises(InvalidTokenError):
        grant_of(text)


def test_names_and_limits_are_those_of_the_wire() -> None:
    assert (grants.TABLE_NAME, grants.WORKER_ID) == (TABLE_NAME_PATTERN, WORKER_ID_PATTERN)
    assert (grants.MAX_GRANTS, MAX_DAYS) == (MAX_GRANTS, MAX_TOKEN_DAYS)
