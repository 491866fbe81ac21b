"""Lookups of pages, some of which may fail."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Generic, TypeVar

from windrow_service.api.problems import describe
from windrow_service.usecases.errors import UseCaseError

# Most files that are looked at one by one while somebody waits for the page.
MAX_LOOKED_AT = 1_000_000
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class LookupResult(Generic[T]):
    """The result of a lookup, or the reason why it failed."""

    value: T | None
    problem: str = ""


async def looked_up(work: Awaitable[T]) -> LookupResult[T]:
    """Return the result of a lookup, or the message that the page shows instead."""
    try:
        return LookupResult(await work)
    except UseCaseError as error:
        return LookupResult(None, describe(error).body["detail"])
