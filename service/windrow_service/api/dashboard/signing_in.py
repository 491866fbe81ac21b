"""Signing in and out, the style sheet, and the way to the first page."""

from __future__ import annotations

from http import HTTPStatus
from pathlib import Path
from urllib.parse import parse_qsl

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import FileResponse, RedirectResponse, Response

from windrow_service.api import html
from windrow_service.api.browsers import (
    FormOutdatedError,
    forget_session,
    keep_session,
    session_in,
)
from windrow_service.api.html.rendering import ROOT, SIGN_IN, page, relative_to
from windrow_service.api.rules import READ, GuardedRouter
from windrow_service.api.services import services_of
from windrow_service.usecases.access.errors import UnauthenticatedError

_STATIC = Path(html.__file__).parent / "static"
_STYLE = "dashboard.css"

# What nobody needs to be signed in for: see `api.access`.
open_router = APIRouter(include_in_schema=False)
router = GuardedRouter(include_in_schema=False)


async def fields_of(request: Request) -> dict[str, str]:
    """Return the fields of a form that was sent."""
    body = (await request.body()).decode("utf-8", "replace")
    return dict(parse_qsl(body, keep_blank_values=True))


async def changes_of(request: Request) -> dict[str, str]:
    """Return the fields of a form that changes something.

    Raises:
        FormOutdatedError: It is not of a page that was made for the caller.
    """
    fields = await fields_of(request)
    forms = services_of(request).access.forms
    forms.check(request.state.principal.name, fields.get("form", ""))
    return fields


@router.get(ROOT, dependencies=[READ])
async def front(request: Request) -> Response:
    """Go to the first page."""
    return RedirectResponse(relative_to(request, f"{ROOT}/tables"))


@open_router.get(SIGN_IN)
async def sign_in(request: Request, to: str = "tables") -> Response:
    """Ask for a token."""
    return await page(request, "sign_in.html", to=to, refused="")


@open_router.post(SIGN_IN)
async def signed_in(request: Request) -> Response:
    """Begin a session with a token, if it is valid.

    Raises:
        FormOutdatedError: Another site sent the form.
    """
    if request.headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
        raise FormOutdatedError
    fields = await fields_of(request)
    token, to = fields.get("token", "").strip(), fields.get("to", "tables")
    access = services_of(request).access
    try:
        session, secret = await access.sessions.begin(token)
    except UnauthenticatedError:
        refused = "This token is not valid: it may have expired or been revoked."
        return await page(request, "sign_in.html", to=to, refused=refused)
    # What follows the folder of the pages cannot leave this origin.
    answer = RedirectResponse(relative_to(request, f"{ROOT}/") + to, HTTPStatus.SEE_OTHER)
    keep_session(request, answer, session, secret)
    return answer


@router.post(f"{ROOT}/sign-out", dependencies=[READ])
async def sign_out(request: Request) -> Response:
    """End the session."""
    await changes_of(request)
    await services_of(request).access.sessions.end(session_in(request))
    answer = RedirectResponse(relative_to(request, SIGN_IN), HTTPStatus.SEE_OTHER)
    forget_session(request, answer)
    return answer


@open_router.get(f"{ROOT}/static/{{name}}")
async def static(name: str) -> Response:
    """Return the style sheet."""
    if name != _STYLE:
        raise HTTPException(HTTPStatus.NOT_FOUND)
    return FileResponse(_STATIC / _STYLE, headers={"Cache-Control": "max-age=300"})
