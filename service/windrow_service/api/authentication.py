"""Authentication: tokens are checked before bodies are read."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, TypeVar, cast

from fastapi import Depends, Request
from starlette.types import ASGIApp, Receive, Scope, Send

from windrow_service.api.errors import FormOutdatedError
from windrow_service.api.html.rendering import ROOT, SIGN_IN, is_page
from windrow_service.api.iceberg_errors import ROOT as ICEBERG
from windrow_service.api.problems import problem_answer
from windrow_service.api.services import services_of
from windrow_service.usecases.access.authenticate import Principal
from windrow_service.usecases.access.errors import (
    IssuerUnavailableError,
    TooManyGuessesError,
    UnauthenticatedError,
)
from windrow_service.usecases.errors import StoreUnavailableError

T = TypeVar("T")
Sent = TypeVar("Sent", str, str | None)
# Health probes have no token, and neither the guide nor the API's description is secret.
_OPEN = frozenset(("/", "/docs", "/guide", "/openapi.json", SIGN_IN, f"{ICEBERG}/oauth/tokens"))
_OPEN_BELOW = ("/guide/", "/health/", "/static-offline-docs/", f"{ROOT}/static/", f"{SIGN_IN}/")
# With it, a session counts for calls too: only our own pages know its value, which is that of their
# forms, and browsers let no other site send such a header.
FORM = "X-Windrow-Form"
_REFUSALS = (
    FormOutdatedError,
    IssuerUnavailableError,
    StoreUnavailableError,
    TooManyGuessesError,
    UnauthenticatedError,
)


class Authentication:
    """Middleware that authenticates the caller and sets `request.state.principal`.

    It runs before FastAPI reads the body, so that the body of an unauthenticated request is never
    read.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "http" and not is_open(scope["path"]):
            request = Request(scope)
            access = services_of(request).access
            try:
                # A cookie alone counts on pages only: another site can make a browser send a call.
                form = None if "Authorization" in request.headers else request.headers.get(FORM)
                if is_page(scope["path"]) or form is not None:
                    secret = access.browsers.session_in(request)
                    find = access.sessions.find
                    request.state.signed_in = await checked(request, secret, find)
                    request.state.principal = request.state.signed_in.principal
                    if form is not None:
                        access.browsers.check_form(request.state.principal.name, form)
                else:
                    token = _token_in(request)
                    request.state.principal = await checked(request, token, access.authenticate)
            except _REFUSALS as error:
                return await problem_answer(request, error)(scope, receive, send)
        await self._app(scope, receive, send)


async def checked(
    request: Request,
    token: Sent,
    identify: Callable[[Sent], Awaitable[T]],
    client_id: str = "",
) -> T:
    """Return what `identify` makes of a token or secret, unless too many others were wrong.

    Raises:
        TooManyGuessesError: They were; where the token comes from must wait.
    """
    guesses = services_of(request).access.guesses
    if guesses is None or token is None:
        return await identify(token)
    host = request.client.host if request.client is not None else ""
    return await guesses.checked(token, host, client_id, identify)


def is_open(path: str) -> bool:
    """Return whether a path is served to everybody."""
    return path in _OPEN or path.startswith(_OPEN_BELOW)


def _token_in(request: Request) -> str | None:
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


async def _principal(request: Request) -> Principal:
    return cast(Principal, request.state.principal)


PrincipalDep = Annotated[Principal, Depends(_principal)]
