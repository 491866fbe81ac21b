"""Changes with an `Idempotency-Key`: made once, with the same answer to each repetition."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable
from typing import Annotated, Any, Protocol

from fastapi import Depends, FastAPI, Header, Request, Response, status
from pydantic import BaseModel

from windrow_service.api.authentication import PrincipalDep
from windrow_service.api.parameters import etag
from windrow_service.api.services import AccessDep
from windrow_service.usecases.errors import NotFoundError, RepeatedRequestError
from windrow_service.usecases.ports import Once
from windrow_service.usecases.tables.errors import TableChangedError

REPLAYED = "Idempotency-Replayed"


class KeptAnswer(BaseModel):
    """An answer that is stored with its key.

    Attributes:
        status: HTTP status.
        headers: Headers that belong to the answer, such as ETag.
        body: JSON; empty if there is none.
    """

    status: int
    headers: dict[str, str] = {}
    body: str = ""

    @classmethod
    def of(cls, body: BaseModel, *, version: str | None = None, is_new: bool = False) -> KeptAnswer:
        """Return the answer that shows something, with its version if it has one."""
        return cls(
            status=status.HTTP_201_CREATED if is_new else status.HTTP_200_OK,
            headers={} if version is None else etag(version),
            body=body.model_dump_json(),
        )

    def response(self) -> Response:
        """Return the answer as an HTTP response."""
        media_type = "application/json" if self.body else None
        return Response(self.body, self.status, self.headers, media_type)


class _Stored(Protocol):
    """Something as the store holds it: as callers see it, and its version."""

    @property
    def info(self) -> BaseModel: ...

    @property
    def version(self) -> str: ...


def stored_answer(result: tuple[_Stored, bool]) -> KeptAnswer:
    """Return the answer to the creation or the change of something; the flag tells which."""
    entry, is_new = result
    return KeptAnswer.of(entry.info, version=entry.version, is_new=is_new)


def deletion_answer(_: None) -> KeptAnswer:
    """Return the answer to a deletion."""
    return KeptAnswer(status=status.HTTP_204_NO_CONTENT)


# Given a function that turns the result of a change into an answer, makes a `Once` for the stores.
MakeOnce = Callable[[Callable[[Any], KeptAnswer]], Once | None]

KeyHeader = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        description="Names this one change, for example a UUID. If it is repeated within a day, "
        "the change is not made again: the first answer is returned, with "
        "`Idempotency-Replayed: true`. A refused change may be tried again with the same key.",
        pattern="^[!-~]+$",
        max_length=128,
    ),
]


async def _once(
    request: Request, access: AccessDep, principal: PrincipalDep, key: KeyHeader = None
) -> AsyncIterator[MakeOnce]:
    if key is None:
        yield lambda _: None
        return
    body = await request.body()
    # In a thread, because hashing a large body would delay other requests.
    fingerprint = await asyncio.to_thread(_fingerprint, request, body)

    def once_for(answer: Callable[[Any], KeptAnswer]) -> Once:
        return Once(
            principal=principal.name,
            key=key,
            fingerprint=fingerprint,
            answer=lambda result: answer(result).model_dump_json(),
        )

    claim = once_for(lambda _: KeptAnswer(status=0))
    # Before the work, which may be expensive.
    await access.once.refuse_repeated(claim)
    try:
        yield once_for
    except (TableChangedError, NotFoundError):
        # This very change may have been made in the meantime.
        await access.once.refuse_repeated(claim)
        raise


# As a dependency of a route, it answers repeated requests before later rules are checked.
ONCE = Depends(_once)
OnceDep = Annotated[MakeOnce, ONCE]


def install(app: FastAPI) -> None:
    """Make an application repeat its first answer to repeated requests."""
    app.add_exception_handler(RepeatedRequestError, _repeat)


async def _repeat(_: Request, error: Exception) -> Response:
    assert isinstance(error, RepeatedRequestError)
    response = KeptAnswer.model_validate_json(error.answer).response()
    response.headers[REPLAYED] = "true"
    return response


def _fingerprint(request: Request, body: bytes) -> str:
    digest = hashlib.sha256(body)
    parts = (request.method, request.url.path, request.url.query)
    digest.update(repr((*parts, request.headers.get("If-Match"))).encode())
    return digest.hexdigest()
