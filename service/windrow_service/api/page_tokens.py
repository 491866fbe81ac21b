"""Page tokens: opaque, signed, and valid for one list and one caller only."""

from __future__ import annotations

from urllib.parse import quote

from itsdangerous import BadData, URLSafeSerializer

from windrow_service.usecases.errors import PageTokenError


class PageTokens:
    """Make and read page tokens.

    Args:
        key: Signs the tokens; all replicas have the same key.
        principal: Name of the only caller for whom the tokens are valid.
    """

    def __init__(self, key: str, principal: str = "") -> None:
        self._key = key
        self._principal = principal

    def of(self, principal: str) -> PageTokens:
        """Return the page tokens of one caller."""
        return PageTokens(self._key, principal)

    def make(self, listing: str, position: str | int) -> str:
        """Return a token that continues a listing at `position`."""
        return str(self._serializer(listing).dumps(position))

    def read_text(self, listing: str, token: str | None) -> str:
        """Return the position in a token of a listing ordered by name; empty for the start."""
        position = "" if token is None else self._load(listing, token)
        if not isinstance(position, str):
            raise PageTokenError
        return position

    def read_number(self, listing: str, token: str | None, start: int) -> int:
        """Return the position in a token of a listing ordered by number; `start` for the start."""
        position = start if token is None else self._load(listing, token)
        if not isinstance(position, int):
            raise PageTokenError
        return position

    def _load(self, listing: str, token: str) -> object:
        try:
            position: object = self._serializer(listing).loads(token)
        except BadData as error:
            raise PageTokenError from error
        return position

    def _serializer(self, listing: str) -> URLSafeSerializer:
        # Without colons in the caller's name, different pairs cannot give the same salt.
        caller = quote(self._principal, safe="/@")
        return URLSafeSerializer(self._key, salt=f"windrow-page:{caller}:{listing}")
