"""Page tokens: opaque, signed, and good for one list and one caller only."""

from __future__ import annotations

from itsdangerous import BadData, URLSafeSerializer

from windrow_service.usecases.errors import PageTokenError


class PageTokens:
    """Make and read page tokens.

    Args:
        key: Signs the tokens; the same for all replicas.
        principal: Name of the one caller that they are for.
    """

    def __init__(self, key: str, principal: str = "") -> None:
        self._key = key
        self._principal = principal

    def of(self, principal: str) -> PageTokens:
        """Return what makes and reads the tokens of one caller."""
        return PageTokens(self._key, principal)

    def make(self, listing: str, position: str | int) -> str:
        """Return a token that leads on from `position` of a listing."""
        return str(self._serializer(listing).dumps(position))

    def read_text(self, listing: str, token: str | None) -> str:
        """Return the position in a token of a listing by name; empty at its start.

        Raises:
            PageTokenError: The token was not made for this listing.
        """
        position = "" if token is None else self._load(listing, token)
        if not isinstance(position, str):
            raise PageTokenError
        return position

    def read_number(self, listing: str, token: str | None, start: int) -> int:
        """Return the position in a token of a listing by number; `start` at its start.

        Raises:
            PageTokenError: The token was not made for this listing.
        """
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
        # A name holds no colon, so that no two pairs give the same salt.
        return URLSafeSerializer(self._key, salt=f"windrow-page:{self._principal}:{listing}")
