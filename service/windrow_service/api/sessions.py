"""Sessions of browsers: a cookie with the caller's token, and forms that only own pages can send."""

from __future__ import annotations

from itsdangerous import BadData, URLSafeTimedSerializer

COOKIE = "windrow_session"
LASTS_S = 12 * 3600
# Browsers drop cookies above 4,096 bytes, of which the signature and the name take some.
MAX_TOKEN = 2_900


class FormOutdatedError(Exception):
    """A form was not made for this caller by a page here, or too long ago."""

    def __str__(self) -> str:
        return "this form is too old, or is another caller's: open the page again"


class Sessions:
    """Sign what browsers keep.

    Args:
        key: Signs it; all replicas have the same key.
    """

    def __init__(self, key: str) -> None:
        self._cookies = URLSafeTimedSerializer(key, salt="windrow-session")
        self._forms = URLSafeTimedSerializer(key, salt="windrow-form")

    def cookie_of(self, token: str) -> str:
        """Return the value of the cookie that keeps a token."""
        return str(self._cookies.dumps(token))

    def token_in(self, cookie: str | None) -> str | None:
        """Return the token in a cookie; None if there is none that is signed and new enough."""
        try:
            token = self._cookies.loads(cookie or "", max_age=LASTS_S)
        except BadData:
            return None
        return token if isinstance(token, str) else None

    def form_of(self, principal: str) -> str:
        """Return what the forms on a page for a caller carry."""
        return str(self._forms.dumps(principal))

    def check_form(self, principal: str, sent: str) -> None:
        """Make sure that a form is of a page for the caller.

        Raises:
            FormOutdatedError: It is not.
        """
        try:
            made_for = self._forms.loads(sent, max_age=LASTS_S)
        except BadData as error:
            raise FormOutdatedError from error
        if made_for != principal:
            raise FormOutdatedError
