"""Grants: what a caller may do, and with which tables or workers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from windrow_service.usecases.access.errors import InvalidTokenError
from windrow_service.usecases.names import Names

# Each scope, with all scopes that it includes.
SCOPES: Mapping[str, frozenset[str]] = {
    "read": frozenset({"read"}),
    "write": frozenset({"read", "write"}),
    "worker": frozenset({"worker"}),
    "admin": frozenset({"read", "write", "worker", "admin"}),
}
_EVERY = "*"
_BELOW = ".*"
# Copies of the wire models' patterns: to import those models would take longer than everything
# else in a command for tokens.
TABLE_NAME = r"^[A-Za-z0-9_][A-Za-z0-9_-]{0,127}(\.[A-Za-z0-9_][A-Za-z0-9_-]{0,127}){0,2}$"
WORKER_ID = r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$"
MAX_GRANTS = 100
_MAX_NAME = 256


@dataclass(frozen=True, slots=True)
class Grants:
    """Everything that a caller may do: the tables or workers that each scope is granted on."""

    names: Mapping[str, Names]

    def of(self, scope: str) -> Names:
        """Return the tables that a scope is granted on, or the workers for the scope `worker`."""
        return self.names[scope]


def grant_of(text: str) -> tuple[str, str]:
    """Return the scope and the pattern of a grant, such as `read:sales.*`.

    A pattern is a name, a name followed by `.*` for everything below it, or `*`. A scope alone is
    granted on everything.
    """
    scope, colon, pattern = text.partition(":")
    if scope not in SCOPES:
        raise InvalidTokenError(
            f"no scope {scope[:128]!r}: a grant is a scope ({', '.join(SCOPES)}), such as `read`, "
            "or a scope on tables, such as `read:sales.*`"
        )
    if not colon or pattern == _EVERY:
        return scope, _EVERY
    name = pattern.removesuffix(_BELOW)
    syntax = WORKER_ID if scope == "worker" else TABLE_NAME
    if len(name) > _MAX_NAME or not re.fullmatch(syntax, name):
        what = "worker" if scope == "worker" else "table"
        raise InvalidTokenError(
            f"{pattern[:128]!r} names no {what}: use a name such as `sales.orders`, one that ends "
            "in `.*` for all below it, or `*`"
        )
    return scope, pattern


@lru_cache(1_000)
def compiled(texts: tuple[str, ...]) -> Grants:
    """Return grants in the form in which they are checked."""
    by_scope: dict[str, set[str]] = {scope: set() for scope in SCOPES}
    for text in texts:
        scope, pattern = grant_of(text)
        for other in SCOPES[scope]:
            # Only `admin` on everything includes `worker`: a pattern of tables names no workers.
            if other != "worker" or scope == "worker" or pattern == _EVERY:
                by_scope[other].add(pattern)
    return Grants({scope: _names(patterns) for scope, patterns in by_scope.items()})


def grants_on(table: str) -> Sequence[str]:
    """Return all grants that allow something on a table, except for those on everything."""
    parts = table.split(".")
    below = (".".join(parts[:count]) + _BELOW for count in range(1, len(parts)))
    patterns = [table, *below]
    return [f"{scope}:{one}" for scope in SCOPES if "read" in SCOPES[scope] for one in patterns]


def _names(patterns: Iterable[str]) -> Names:
    names = frozenset(patterns)
    if _EVERY in names:
        return Names(every=True)
    below = frozenset(pattern for pattern in names if pattern.endswith(_BELOW))
    return Names(exact=names - below, below=frozenset(pattern[:-1] for pattern in below))
