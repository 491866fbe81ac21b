"""Parameters shared by several calls: names in paths, pages, conditions and preferences."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Annotated, Literal, TypeVar

from fastapi import Depends, Header, Path, Query, Response
from pydantic import AfterValidator, AwareDatetime, BaseModel, BeforeValidator

from windrow_core.models import TABLE_NAME_PATTERN
from windrow_service.api.authentication import PrincipalDep
from windrow_service.api.page_tokens import PageTokens
from windrow_service.api.services import AccessDep
from windrow_service.usecases.ports import NO_VERSION, Page


async def _page_tokens(access: AccessDep, principal: PrincipalDep) -> PageTokens:
    return access.page_tokens.of(principal.name)


# Page tokens that are valid only for the caller.
PageTokensDep = Annotated[PageTokens, Depends(_page_tokens)]
T = TypeVar("T")
TableNamePath = Annotated[
    str,
    Path(pattern=TABLE_NAME_PATTERN, max_length=256, description="For example `sales.events`."),
]
PlanIdPath = Annotated[str, Path(pattern="^[0-9a-f]{32}$")]
PageTokenQuery = Annotated[
    str | None, Query(max_length=4096, description="`next_page_token` of the previous page.")
]
_DATE = re.compile(r"\d{4}-\d\d-\d\d")


def _refuse_number(text: object) -> object:
    # Pydantic would take a number for seconds since 1970.
    if isinstance(text, str) and not _DATE.match(text):
        raise ValueError("not a time such as 2026-11-21T08:00:00Z")
    return text


def in_utc(at: datetime) -> datetime:
    """Return a time in UTC; a time without a zone is taken to be in UTC."""
    try:
        return at.replace(tzinfo=timezone.utc) if at.tzinfo is None else at.astimezone(timezone.utc)
    except OverflowError as error:
        raise ValueError("out of range") from error


# In UTC, since SQLite compares times without their zones.
Moment = Annotated[AwareDatetime, BeforeValidator(_refuse_number), AfterValidator(in_utc)]
# PostgreSQL has no text with a null character.
NO_NULLS = r"^[^\x00]*$"
PageSizeQuery = Annotated[
    int | None,
    Query(
        ge=1,
        le=10_000,
        description="Most entries to return. A page may hold fewer, as it is limited in bytes too; "
        "the last one is the page without `next_page_token`.",
    ),
]
# An entry of some lists takes kilobytes, such as a table with its columns.
_MOST_ENTRIES = 1_000
_DEFAULT_ENTRIES = 100
IfMatchHeader = Annotated[
    str | None,
    Header(description="Make the change only if the table's ETag is still this.", max_length=256),
]
IfNoneMatchHeader = Annotated[
    Literal["*"] | None,
    Header(description="`*`: make the change only if there is nothing to be replaced."),
]
AcceptHeader = Annotated[str, Header(max_length=1024)]
PreferHeader = Annotated[
    str | None,
    Header(
        description="`respond-async` answers 202 at once; with `, wait=10`, within 10 seconds.",
        max_length=256,
    ),
]
PlanPreferHeader = Annotated[
    str | None,
    Header(
        description="`respond-async` answers 202 at once; with `, wait=10`, within 10 seconds. "
        "`unlisted` leaves a plan that is completed out of the list of plans.",
        max_length=256,
    ),
]
_MAX_WAIT_S = 60


@dataclass(frozen=True, slots=True)
class ListPage:
    """The page of a list that a caller asks for.

    Attributes:
        tokens: Page tokens that are valid only for the caller.
        token: Where the page begins; None for the first.
        size: Most entries that the caller wants; None if it does not say.
    """

    tokens: PageTokens
    token: str | None
    size: int | None

    def limit(self, default: int = _DEFAULT_ENTRIES) -> int:
        """Return how many entries the page has at most."""
        return min(self.size or default, _MOST_ENTRIES)

    def after(self, listing: str) -> str:
        """Return the name that the page of a list ordered by name begins after."""
        return self.tokens.read_text(listing, self.token)

    def begin(self, listing: str, start: int) -> int:
        """Return the number that the page of a list ordered by number begins at."""
        return self.tokens.read_number(listing, self.token, start)

    def next_token(
        self, listing: str, entries: Page[T], position: Callable[[T], str | int]
    ) -> str | None:
        """Return the token of the page after these entries; None if no others follow."""
        return self.tokens.make(listing, position(entries[-1])) if entries.more else None


async def _list_page(
    tokens: PageTokensDep, page_token: PageTokenQuery = None, page_size: PageSizeQuery = None
) -> ListPage:
    return ListPage(tokens, page_token, page_size)


ListPageDep = Annotated[ListPage, Depends(_list_page)]


def etag(version: str) -> dict[str, str]:
    """Return the header with the version of what an answer shows."""
    return {"ETag": f'"{version}"'}


async def json_answer(model: BaseModel) -> Response:
    """Return a long answer as JSON.

    FastAPI would validate and encode it on the event loop, which takes ten times as long.
    """
    body = await asyncio.to_thread(model.model_dump_json)
    return Response(body, media_type="application/json")


def version_of(if_match: str | None, if_none_match: str | None = None) -> str | None:
    """Return the version that a change's headers expect; None if there is no condition.

    Args:
        if_match: An ETag, or `*` for any version.
        if_none_match: `*` for `NO_VERSION`: nothing fits both headers.
    """
    version = None if if_match is None else if_match.strip().removeprefix("W/").strip('"')
    if if_none_match is None:
        return version
    return NO_VERSION if version is None else f"{NO_VERSION} and {version}"


def is_listed(prefer: str | None) -> bool:
    """Return whether a plan enters the history."""
    return "unlisted" not in _preferences(prefer)


def wait_of(prefer: str | None) -> float | None:
    """Return how many seconds to wait before answering 202; None if 202 is not preferred.

    Other preferences are ignored, as RFC 7240 allows.
    """
    preferences = _preferences(prefer)
    if "respond-async" not in preferences:
        return None
    waits = [part.removeprefix("wait=") for part in preferences if part.startswith("wait=")]
    return float(min(int(waits[0]), _MAX_WAIT_S)) if waits and waits[0].isdecimal() else 0.0


def _preferences(prefer: str | None) -> list[str]:
    return [part.strip().lower() for part in (prefer or "").split(",")]
