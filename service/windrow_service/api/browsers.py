"""Cookies that browsers keep, and forms that only the coordinator's own pages can send."""

from __future__ import annotations

from dataclasses import astuple
from typing import Literal

from fastapi import Request, Response
from itsdangerous import BadData, URLSafeTimedSerializer

from windrow_service.api.errors import FormOutdatedError
from windrow_service.usecases.access.ports import PendingSignIn, Session
from windrow_service.usecases.access.sessions import LONGEST

_SESSION, _SIGN_IN = "windrow_session", "windrow_sign_in"
# Browsers accept a cookie with this prefix only from this host itself, and only by HTTPS.
_OF_THIS_HOST = "__Host-"
_SIGN_IN_LASTS_S = 600


class Browsers:
    """Write and read the cookies and forms of browsers.

    Args:
        key: Signs forms and sign-ins; all replicas have the same key.
        encrypted: Whether all browsers use HTTPS; otherwise, each request shows whether its does.
    """

    def __init__(self, key: str, *, encrypted: bool) -> None:
        self._forms = URLSafeTimedSerializer(key, salt="windrow-form")
        self._sign_ins = URLSafeTimedSerializer(key, salt="windrow-sign-in")
        self._encrypted = encrypted

    def form_of(self, principal: str) -> str:
        """Return the signed value that forms on a caller's pages contain."""
        return str(self._forms.dumps(principal))

    def check_form(self, principal: str, form: str) -> None:
        """Make sure that a form was made for the caller."""
        try:
            made_for = self._forms.loads(form, max_age=int(LONGEST.total_seconds()))
        except BadData as error:
            raise FormOutdatedError from error
        if made_for != principal:
            raise FormOutdatedError

    def session_in(self, request: Request) -> str | None:
        """Return the secret of the session that a browser keeps."""
        return self._kept(request, _SESSION)

    def keep_session(
        self, request: Request, answer: Response, session: Session, secret: str
    ) -> None:
        """Make a browser keep the secret of a session until it ends."""
        lasts = session.expires_at - session.created_at
        self._keep(request, answer, _SESSION, secret, round(lasts.total_seconds()), "strict")

    def forget_session(self, request: Request, answer: Response) -> None:
        """Make a browser forget its session."""
        self._keep(request, answer, _SESSION, "", 0, "strict")

    def sign_in_in(self, request: Request) -> tuple[PendingSignIn, str] | None:
        """Return the sign-in that a browser has begun, and the page it leads to; None if none."""
        try:
            fields = self._sign_ins.loads(
                self._kept(request, _SIGN_IN) or "", max_age=_SIGN_IN_LASTS_S
            )
        except BadData:
            return None
        issuer, state, nonce, verifier, to = fields
        return PendingSignIn(issuer=issuer, state=state, nonce=nonce, verifier=verifier), to

    def keep_sign_in(
        self, request: Request, answer: Response, sign_in: PendingSignIn, to: str
    ) -> None:
        """Make a browser keep the sign-in that it has begun, and the page it leads to."""
        signed = str(self._sign_ins.dumps([*astuple(sign_in), to]))
        # The browser comes back from the issuer's site, and would not send a strict cookie then.
        self._keep(request, answer, _SIGN_IN, signed, _SIGN_IN_LASTS_S, "lax")

    def forget_sign_in(self, request: Request, answer: Response) -> None:
        """Make a browser forget the sign-in that it has begun: it can be finished once."""
        self._keep(request, answer, _SIGN_IN, "", 0, "lax")

    def _kept(self, request: Request, name: str) -> str | None:
        return request.cookies.get(self._named(request, name))

    def _keep(
        self,
        request: Request,
        answer: Response,
        name: str,
        value: str,
        max_age: int,
        samesite: Literal["lax", "strict"],
    ) -> None:
        answer.set_cookie(
            self._named(request, name),
            value,
            max_age=max_age,
            httponly=True,
            samesite=samesite,
            secure=self._is_encrypted(request),
        )

    def _named(self, request: Request, name: str) -> str:
        return _OF_THIS_HOST + name if self._is_encrypted(request) else name

    def _is_encrypted(self, request: Request) -> bool:
        # A caller that lies in the header only gets a cookie that its browser does not send back.
        # Of several values, the first is from the proxy that the browser talks to.
        scheme = request.headers.get("X-Forwarded-Proto", "").partition(",")[0].strip()
        return self._encrypted or "https" in (request.url.scheme, scheme.lower())
