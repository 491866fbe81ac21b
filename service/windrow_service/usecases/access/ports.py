"""Bearer tokens as they are kept, and where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """What is known of a token; the token itself is kept nowhere.

    Attributes:
        token_id: Names it, and is no secret.
        name: Of who uses it; tokens of one name are one principal.
        scopes: What it was made for, of `usecases.access.SCOPES`.
        created_at: When it was made.
        expires_at: From when on it is refused; None for never.
        revoked_at: Since when it is refused; None if it was not revoked.
    """

    token_id: str
    name: str
    scopes: tuple[str, ...]
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None

    def is_valid(self, now: datetime) -> bool:
        """Tell whether it has neither expired nor been revoked."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


class TokenStore(Protocol):
    """Tokens, by the digests of their secrets."""

    async def add(self, token: Token, digest: str) -> None:
        """Keep a new token."""

    async def find(self, digest: str) -> Token | None:
        """Return the token with this digest, also one that has expired or was revoked."""

    async def list(self) -> Sequence[Token]:
        """Return all tokens by name, the oldest of each first."""

    async def revoke(self, token_id: str, now: datetime) -> Token:
        """Refuse a token from now on; one that is revoked stays so since it was.

        Raises:
            TokenNotFoundError: No token has this id.
        """
