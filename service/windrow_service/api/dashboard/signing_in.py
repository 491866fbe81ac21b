"""Signing in and out, the style sheet, and the redirect to the first page."""

from __future__ import annotations

from http import HTTPStatus
from pathlib import Path
from urllib.parse import parse_qsl

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import FileResponse, RedirectResponse, Response

from windrow_service.api import html
from windrow_service.api.authentication import checked
from windrow_service.api.authorization import READ, SIGNED_IN, GuardedRouter
from windrow_service.api.errors import FormOutdatedError
from windrow_service.api.html.rendering import (
    ROOT,
    SIGN_IN,
    page,
    page_asked_for,
    redirect,
    relative_to,
)
from windrow_service.api.problems import describe
from windrow_service.api.services import services_of
from windrow_service.logs import get_logger
from windrow_service.usecases.access.errors import (
    IssuerUnavailableError,
    NothingGrantedError,
    TooManyGuessesError,
    UnauthenticatedError,
)
from windrow_service.usecases.access.grants import SCOPES
from windrow_service.usecases.errors import UseCaseError

_STATIC = Path(html.__file__).parent / "static"
_FILES = frozenset(path.name for path in _STATIC.iterdir())
_MAX_FIELDS = 20
_NOT_VALID = "This token is not valid: it may have expired or been revoked."

_REFUSALS = (
    IssuerUnavailableError,
    NothingGrantedError,
    TooManyGuessesError,
    UnauthenticatedError,
)

# Pages that need no session: see `api.authentication`.
open_router = APIRouter(include_in_schema=False)
router = GuardedRouter(include_in_schema=False)
_log = get_logger(__name__)


async def fields_of(request: Request) -> dict[str, str]:
    """Return the fields of a form that was sent."""
    body = (await request.body()).decode("utf-8", "replace")
    try:
        fields = dict(parse_qsl(body, keep_blank_values=True, max_num_fields=_MAX_FIELDS))
    except ValueError as error:
        raise FormOutdatedError from error
    if any("\0" in value for value in fields.values()):
        raise FormOutdatedError
    return fields


async def changes_of(request: Request) -> dict[str, str]:
    """Return the fields of a form that changes something."""
    fields = await fields_of(request)
    browsers = services_of(request).access.browsers
    browsers.check_form(request.state.principal.name, fields.get("form", ""))
    return fields


@router.get(ROOT, dependencies=[READ])
async def front(request: Request) -> Response:
    """Redirect to the first page."""
    return RedirectResponse(relative_to(request, f"{ROOT}/overview"))


@open_router.get(SIGN_IN)
async def sign_in(request: Request, to: str = "overview") -> Response:
    """Show the sign-in page."""
    return await sign_in_page(request, to)


@open_router.post(SIGN_IN)
async def signed_in(request: Request) -> Response:
    """Begin a session with a token, if it is valid."""
    if request.headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
        raise FormOutdatedError
    fields = await fields_of(request)
    token, to = fields.get("token", "").strip(), fields.get("to", "overview")
    access = services_of(request).access
    try:
        session, secret = await checked(request, token, access.sessions.begin)
    except _REFUSALS as error:
        return await sign_in_page(request, to, error)
    _log.info("signed in", principal=session.principal, by="token")
    answer = redirect(request, f"{ROOT}/{page_asked_for(to)}")
    access.browsers.keep_session(request, answer, session, secret)
    return answer


async def sign_in_page(request: Request, to: str, error: UseCaseError | None = None) -> Response:
    """Return the sign-in page, with the error of the last attempt."""
    signing_in = services_of(request).access.signing_in
    problem = None if error is None else describe(error)
    refusal = "" if problem is None else problem.body["detail"]
    is_token_refused = isinstance(error, UnauthenticatedError)
    answer = await page(
        request,
        "sign_in.html",
        to=page_asked_for(to),
        ways=[] if signing_in is None else signing_in.ways,
        # The error's own message is for callers of the API.
        refused=_NOT_VALID if is_token_refused else refusal,
        is_token_refused=is_token_refused,
    )
    if problem is not None:
        answer.status_code = problem.body["status"]
        answer.headers.update(problem.headers)
    return answer


@router.get(f"{ROOT}/you", dependencies=[READ])
async def show_you(request: Request) -> Response:
    """Show who is signed in, and what the caller may do; `/docs` learns from it who calls."""
    grants = request.state.principal.grants
    return await page(request, "you.html", grants={scope: grants.of(scope) for scope in SCOPES})


@router.post(f"{ROOT}/sign-out", dependencies=[SIGNED_IN])
async def sign_out(request: Request) -> Response:
    """End the session."""
    await changes_of(request)
    access = services_of(request).access
    await access.sessions.end(access.browsers.session_in(request))
    answer = redirect(request, SIGN_IN)
    access.browsers.forget_session(request, answer)
    return answer


@open_router.get(f"{ROOT}/static/{{name}}")
async def static(name: str) -> Response:
    """Return a style sheet, or a script of pages."""
    if name not in _FILES:
        raise HTTPException(HTTPStatus.NOT_FOUND)
    return FileResponse(_STATIC / name, headers={"Cache-Control": "max-age=300"})
