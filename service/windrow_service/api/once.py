"""Changes under an `Idempotency-Key`: made once, and answered alike however often asked for."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Header, Request, Response
from pydantic import BaseModel

from windrow_service.api.access import PrincipalDep
from windrow_service.api.deps import ServicesDep
from windrow_service.usecases.errors import NotFoundError, RepeatedRequestError
from windrow_service.usecases.ports import Once
from windrow_service.usecases.tables.errors import TableChangedError

REPLAYED = "Idempotency-Replayed"


class Answer(BaseModel):
    """An answer that is kept with its key.

    Attributes:
        status: HTTP status.
        headers: Those that belong to it, such as ETag.
        body: JSON, or nothing.
    """

    status: int
    headers: dict[str, str] = {}
    body: str = ""

    def response(self) -> Response:
        """Return it as it is sent."""
        media_type = "application/json" if self.body else None
        return Response(self.body, self.status, self.headers, media_type)


# Given how to answer what a change returns, a handler gets what the stores need to know.
MakeOnce = Callable[[Callable[[Any], Answer]], Once | None]

KeyHeader = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        description="Name of this one change, such as a UUID. Asked for again under it, within a "
        "day, the change is not made again: the answer is the first one, with "
        "`Idempotency-Replayed: true`. A change that was refused may be tried again under it.",
        pattern="^[!-~]+$",
        max_length=128,
    ),
]


async def _once(
    request: Request, services: ServicesDep, principal: PrincipalDep, key: KeyHeader = None
) -> AsyncIterator[MakeOnce]:
    if key is None:
        yield lambda _: None
        return
    body = await request.body()
    # In a thread, since a large body would hold up other requests.
    fingerprint = await asyncio.to_thread(_fingerprint, request, body)

    def made(answer: Callable[[Any], Answer]) -> Once:
        return Once(
            principal=principal.name,
            key=key,
            fingerprint=fingerprint,
            answer=lambda result: answer(result).model_dump_json(),
        )

    asked = made(lambda _: Answer(status=0))
    # Before the work, of which there may be much.
    await services.once.refuse_repeated(asked)
    try:
        yield made
    except (TableChangedError, NotFoundError):
        # Perhaps it is this very change that has been made meanwhile.
        await services.once.refuse_repeated(asked)
        raise


OnceDep = Annotated[MakeOnce, Depends(_once)]


def install(app: FastAPI) -> None:
    """Make an application answer repeated requests as it did the first time."""
    app.add_exception_handler(RepeatedRequestError, _repeat)


async def _repeat(_: Request, error: Exception) -> Response:
    assert isinstance(error, RepeatedRequestError)
    response = Answer.model_validate_json(error.answer).response()
    response.headers[REPLAYED] = "true"
    return response


def _fingerprint(request: Request, body: bytes) -> str:
    digest = hashlib.sha256(body)
    asked = (request.method, request.url.path, request.url.query)
    digest.update(repr((*asked, request.headers.get("If-Match"))).encode())
    return digest.hexdigest()
