"""Who may call: bearer tokens are checked before bodies are read, scopes at every call."""

from __future__ import annotations

from typing import Annotated, cast

from fastapi import Depends, Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer, SecurityScopes
from starlette.types import ASGIApp, Receive, Scope, Send

from windrow_service.api.problems import problem_answer
from windrow_service.usecases.access.authenticate import Authenticate, Principal
from windrow_service.usecases.access.errors import UnauthenticatedError
from windrow_service.usecases.errors import StoreUnavailableError

# Probes have no token, and the contract is no secret.
_OPEN = frozenset(("/", "/docs", "/openapi.json"))
_OPEN_BELOW = ("/health/", "/static-offline-docs/")


class Authentication:
    """Middleware that finds out who calls, as `request.state.principal`.

    It comes first: FastAPI reads bodies before it looks at dependencies, and what strangers
    send should not be read at all.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "http" and not _is_open(scope["path"]):
            request = Request(scope)
            authenticate: Authenticate = request.state.services.authenticate
            try:
                request.state.principal = await authenticate(_token_in(request))
            except (UnauthenticatedError, StoreUnavailableError) as error:
                return await problem_answer(request, error)(scope, receive, send)
        await self._app(scope, receive, send)


def _is_open(path: str) -> bool:
    return path in _OPEN or path.startswith(_OPEN_BELOW)


def _token_in(request: Request) -> str | None:
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


async def _principal(request: Request) -> Principal:
    return cast(Principal, request.state.principal)


PrincipalDep = Annotated[Principal, Depends(_principal)]

_bearer = HTTPBearer(
    scheme_name="token",
    description="A token of `windrow token create`. Not asked for by a coordinator that only "
    "its own machine can reach, nor by one that was told to do without. `write` allows what "
    "`read` does, and `admin` everything.",
    auto_error=False,
)


async def _allow(
    needed: SecurityScopes,
    principal: PrincipalDep,
    _: Annotated[HTTPAuthorizationCredentials | None, Security(_bearer)],
) -> None:
    for scope in needed.scopes:
        principal.require(scope)


# Each call names one of these among its dependencies.
READ = Security(_allow, scopes=["read"])
WRITE = Security(_allow, scopes=["write"])
WORKER = Security(_allow, scopes=["worker"])
ADMIN = Security(_allow, scopes=["admin"])
