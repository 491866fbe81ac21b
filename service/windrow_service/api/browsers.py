"""What browsers keep and send back: cookies, and forms that only own pages can send."""

from __future__ import annotations

from fastapi import Request, Response
from itsdangerous import BadData, URLSafeTimedSerializer

from windrow_service.usecases.access.ports import Session
from windrow_service.usecases.access.sessions import LONGEST

_SESSION = "windrow_session"
# Of a cookie with this name, browsers make sure that no other host has set it, and no plain HTTP.
_OF_THIS_HOST = "__Host-"


class FormOutdatedError(Exception):
    """A form was not made for this caller by a page here, or too long ago."""

    def __str__(self) -> str:
        return "this form is too old, or is another caller's: open the page again"


class Forms:
    """Sign what forms carry.

    Args:
        key: Signs it; all replicas have the same key.
    """

    def __init__(self, key: str) -> None:
        self._signed = URLSafeTimedSerializer(key, salt="windrow-form")

    def made_for(self, principal: str) -> str:
        """Return what the forms on a page for a caller carry."""
        return str(self._signed.dumps(principal))

    def check(self, principal: str, sent: str) -> None:
        """Make sure that a form is of a page for the caller.

        Raises:
            FormOutdatedError: It is not.
        """
        try:
            made_for = self._signed.loads(sent, max_age=int(LONGEST.total_seconds()))
        except BadData as error:
            raise FormOutdatedError from error
        if made_for != principal:
            raise FormOutdatedError


def session_in(request: Request) -> str | None:
    """Return the secret of the session that a browser keeps."""
    return request.cookies.get(_named(request, _SESSION))


def keep_session(request: Request, answer: Response, session: Session, secret: str) -> None:
    """Make a browser keep the secret of a session until it ends."""
    answer.set_cookie(
        _named(request, _SESSION),
        secret,
        max_age=int((session.expires_at - session.created_at).total_seconds()),
        httponly=True,
        samesite="strict",
        secure=_is_encrypted(request),
    )


def forget_session(request: Request, answer: Response) -> None:
    """Make a browser forget its session."""
    secure = _is_encrypted(request)
    answer.delete_cookie(_named(request, _SESSION), httponly=True, samesite="strict", secure=secure)


def _named(request: Request, name: str) -> str:
    return _OF_THIS_HOST + name if _is_encrypted(request) else name


def _is_encrypted(request: Request) -> bool:
    # Who lies about it gets a cookie that the browser does not send back.
    return "https" in (request.url.scheme, request.headers.get("X-Forwarded-Proto"))
