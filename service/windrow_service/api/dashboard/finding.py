"""What pages look for, some of which may not be found."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Generic, TypeVar

from windrow_service.api.problems import describe
from windrow_service.usecases.errors import UseCaseError

# Files that can be looked at one by one while somebody waits for the page.
MAX_LOOKED_AT = 1_000_000
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Found(Generic[T]):
    """What was looked for, or why it could not be found."""

    value: T | None
    problem: str = ""


async def found(work: Awaitable[T]) -> Found[T]:
    """Return what work finds, or what the page says in its place."""
    try:
        return Found(await work)
    except UseCaseError as error:
        return Found(None, describe(error).body["detail"])
