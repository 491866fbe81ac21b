"""Make bearer tokens, list them and revoke them."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from windrow_service.usecases.access.authenticate import ANONYMOUS, TOKEN_PREFIX, digest_of
from windrow_service.usecases.access.errors import InvalidTokenError
from windrow_service.usecases.access.grants import MAX_GRANTS, SCOPES, grant_of
from windrow_service.usecases.access.ports import Token, TokenStore
from windrow_service.usecases.ports import Once, Page

if TYPE_CHECKING:
    from windrow_service.usecases.ports import Clock

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,127}")
# The coordinator's own changes are recorded under its name.
_RESERVED = (ANONYMOUS.name, "coordinator")
MAX_DAYS = 3_650
_LONGEST = timedelta(days=MAX_DAYS)


@dataclass(frozen=True, slots=True, kw_only=True)
class ManageTokens:
    """Manage the tokens that callers send."""

    tokens: TokenStore
    clock: Clock

    async def create(
        self,
        name: str,
        grants: Sequence[str],
        expires_in: timedelta | None,
        once: Once | None = None,
    ) -> tuple[Token, str]:
        """Return a new token, and its secret, which is shown only once.

        Args:
            name: Name of its user.
            grants: What the token allows, in the form that `grant_of` reads.
            expires_in: How long the token is valid; None for ever.
            once: The caller's key.

        Raises:
            InvalidTokenError: The name, a grant or the lifetime is not valid.
        """
        if not _NAME.fullmatch(name) or name in _RESERVED:
            raise InvalidTokenError(
                f"{name[:128]!r} is not a name for a token: use at most 128 letters, digits, '.', "
                f"'_', '@' and '-', and neither {' nor '.join(map(repr, _RESERVED))}",
                "name",
            )
        if not grants:
            raise InvalidTokenError(f"a token needs a scope: {', '.join(SCOPES)}")
        if len(grants) > MAX_GRANTS:
            raise InvalidTokenError(f"a token has at most {MAX_GRANTS} grants: use patterns")
        pairs = [grant_of(text) for text in grants]
        everywhere = {scope for scope, pattern in pairs if pattern == "*"}
        if expires_in is not None and not timedelta() < expires_in <= _LONGEST:
            raise InvalidTokenError(
                f"a token must be valid for more than 0 and at most {_LONGEST.days:,} days",
                "days",
            )
        now = self.clock()
        token = Token(
            token_id=secrets.token_hex(8),
            name=name,
            scopes=tuple(scope for scope in SCOPES if scope in everywhere),
            grants=tuple(sorted({f"{scope}:{on}" for scope, on in pairs if on != "*"})),
            created_at=now,
            expires_at=None if expires_in is None else now + expires_in,
        )
        secret = TOKEN_PREFIX + secrets.token_urlsafe(32)
        await self.tokens.add(token, digest_of(secret), once)
        return token, secret

    async def list(self) -> Sequence[Token]:
        """Return all tokens, including those that ended in the last 30 days."""
        return await self.tokens.list()

    async def page(self, after: str, limit: int) -> Page[Token]:
        """Return at most `limit` tokens by name and id, after "NAME ID"; empty for the start."""
        return await self.tokens.page(after, limit)

    async def reaching(self, table: str, after: str, limit: int) -> Page[Token]:
        """Return, as `page` does, the valid tokens that allow something on a table."""
        return await self.tokens.reaching(table, self.clock(), after, limit)

    async def revoke(self, token_id: str) -> Token:
        """Revoke a token, within seconds on all replicas.

        Raises:
            TokenNotFoundError: No token has this id.
        """
        return await self.tokens.revoke(token_id, self.clock())
