"""Signing in with an issuer: the way there, and the way back."""

from __future__ import annotations

from http import HTTPStatus

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from windrow_service.api.dashboard.signing_in import sign_in_page
from windrow_service.api.html.rendering import (
    ROOT,
    SIGN_IN,
    page,
    page_asked_for,
    relative_to,
)
from windrow_service.api.services import AccessDep
from windrow_service.logs import get_logger
from windrow_service.usecases.access.errors import SignInNotOfferedError
from windrow_service.usecases.errors import UseCaseError

# Pages that need no session: see `api.authentication`.
open_router = APIRouter(include_in_schema=False)
_log = get_logger(__name__)


@open_router.get(f"{SIGN_IN}/{{issuer}}")
async def leave(issuer: str, request: Request, access: AccessDep, to: str = "overview") -> Response:
    """Send a browser to an issuer.

    A link, not a form: a form that leads to another host would need that host in the pages'
    policy. With the link, another site can only make a browser visit its issuer.
    """
    try:
        if access.signing_in is None:
            raise SignInNotOfferedError
        url, sign_in = await access.signing_in.begin(issuer)
    except UseCaseError as error:
        return await sign_in_page(request, to, error)
    answer = RedirectResponse(url, HTTPStatus.SEE_OTHER, {"Cache-Control": "no-store"})
    access.browsers.keep_sign_in(request, answer, sign_in, page_asked_for(to))
    return answer


@open_router.get(f"{SIGN_IN}/{{issuer}}/callback")
async def come_back(issuer: str, request: Request, access: AccessDep) -> Response:
    """Begin a session for the person that an issuer has identified."""
    cookie = access.browsers.sign_in_in(request)
    sign_in, to = cookie or (None, "overview")
    try:
        if access.signing_in is None:
            raise SignInNotOfferedError
        identity = await access.signing_in.finish(issuer, dict(request.query_params), sign_in)
        session, secret = await access.sessions.begin_of(identity)
    except UseCaseError as error:
        answer = await sign_in_page(request, to, error)
    else:
        _log.info("signed in", principal=session.principal, by=issuer)
        # Not a redirect: for the browser it would come from the issuer, and lose the strict cookie.
        answer = await page(request, "signed_in.html", to=relative_to(request, f"{ROOT}/{to}"))
        access.browsers.keep_session(request, answer, session, secret)
    # The address of this page contains the code.
    answer.headers["Referrer-Policy"] = "no-referrer"
    access.browsers.forget_sign_in(request, answer)
    return answer
