"""What the calls below `/iceberg` have in common: names of tables, and of clients."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from fastapi import Request

from windrow_core.models import TABLE_NAME_PATTERN
from windrow_service.api.iceberg_errors import ROOT
from windrow_service.usecases.access.authenticate import Principal
from windrow_service.usecases.tables.errors import TableNotFoundError

TABLE = f"{ROOT}/namespaces/{{namespace}}/tables/{{table}}"
# Of tables whose names have no dot.
DEFAULT = ("default",)
MAX_NAME = 256
BETWEEN_LEVELS = "\x1f"
_NAME = re.compile(TABLE_NAME_PATTERN)
_MAX_CLIENT = 200
# Java's client says who it is in a header of its own.
_JAVA = "Apache-HttpClient/"
# Names the reader of a client that works for several.
READER = "X-Windrow-Reader"
T = TypeVar("T")


def levels_of(namespace: str) -> tuple[str, ...]:
    """Return the levels of a namespace."""
    return tuple(namespace.split(BETWEEN_LEVELS))


def names_of(namespace: str, table: str) -> list[str]:
    """Return the names that a table may have, the likelier last.

    Raises:
        TableNotFoundError: No table can have such a name.
    """
    levels = levels_of(namespace)
    full = ".".join((*levels, table))
    if len(full) > MAX_NAME or not _NAME.fullmatch(full) or "." in table:
        raise TableNotFoundError(full[:MAX_NAME])
    return [full, table] if levels == DEFAULT else [full]


async def first_of(
    principal: Principal, names: Sequence[str], ask: Callable[[str], Awaitable[T]]
) -> T:
    """Return what `ask` answers for the first of some names that is a table the caller may read.

    Raises:
        TableNotFoundError: None of them is.
    """
    for name in names[:-1]:
        if name in principal.tables:
            try:
                return await ask(name)
            except TableNotFoundError:
                continue
    principal.require_table("read", names[-1])
    return await ask(names[-1])


def client_of(request: Request) -> str:
    """Return how a client calls itself."""
    agent = request.headers.get("User-Agent", "")
    if agent.startswith(_JAVA):
        agent = request.headers.get("X-Client-Version", agent)
    return agent[:_MAX_CLIENT]
