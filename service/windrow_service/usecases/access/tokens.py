"""Make bearer tokens, list them and revoke them."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from windrow_service.usecases.access.authenticate import ANONYMOUS, SCOPES, TOKEN_PREFIX, digest_of
from windrow_service.usecases.access.errors import InvalidTokenError
from windrow_service.usecases.access.ports import Token, TokenStore

if TYPE_CHECKING:
    from windrow_service.usecases.ports import Clock

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,127}")
_LONGEST = timedelta(days=3650)


@dataclass(frozen=True, slots=True, kw_only=True)
class ManageTokens:
    """Manage the tokens that callers send."""

    tokens: TokenStore
    clock: Clock

    async def create(
        self, name: str, scopes: Sequence[str], expires_in: timedelta | None
    ) -> tuple[Token, str]:
        """Return a new token, and its secret, which is shown only once.

        Raises:
            InvalidTokenError: The name, a scope or the lifetime is not valid.
        """
        if not _NAME.fullmatch(name) or name == ANONYMOUS.name:
            raise InvalidTokenError(
                f"{name[:128]!r} is not a name for a token: use at most 128 letters, digits, '.', "
                f"'_', '@' and '-', and not {ANONYMOUS.name!r}"
            )
        for scope in scopes:
            if scope not in SCOPES:
                raise InvalidTokenError(f"no scope {scope[:128]!r}: use {', '.join(SCOPES)}")
        if not scopes:
            raise InvalidTokenError(f"a token needs a scope: {', '.join(SCOPES)}")
        if expires_in is not None and not timedelta() < expires_in <= _LONGEST:
            raise InvalidTokenError(
                f"a token lasts longer than nothing and at most {_LONGEST.days:,} days"
            )
        now = self.clock()
        token = Token(
            token_id=secrets.token_hex(8),
            name=name,
            scopes=tuple(scope for scope in SCOPES if scope in scopes),
            created_at=now,
            expires_at=None if expires_in is None else now + expires_in,
        )
        secret = TOKEN_PREFIX + secrets.token_urlsafe(32)
        await self.tokens.add(token, digest_of(secret))
        return token, secret

    async def list(self) -> Sequence[Token]:
        """Return all tokens, also those that expired or were revoked."""
        return await self.tokens.list()

    async def revoke(self, token_id: str) -> Token:
        """Refuse a token from now on, and within seconds everywhere.

        Raises:
            TokenNotFoundError: No token has this id.
        """
        return await self.tokens.revoke(token_id, self.clock())
