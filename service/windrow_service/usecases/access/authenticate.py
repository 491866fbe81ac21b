"""Identify callers, and check what they may do."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from cachetools import TTLCache

from windrow_service.usecases.access.errors import (
    NoTokenError,
    ScopeMissingError,
    UnauthenticatedError,
)
from windrow_service.usecases.access.grants import Grants, compiled
from windrow_service.usecases.access.ports import Identity, Token, TokenStore
from windrow_service.usecases.names import Names
from windrow_service.usecases.tables.errors import TableNotFoundError

if TYPE_CHECKING:
    from windrow_service.usecases.ports import Clock

TOKEN_PREFIX = "wdr_"
# How long a revoked token may still be accepted.
_KNOWN_FOR_S = 5.0
_MOST_KNOWN = 10_000
_TOKEN = re.compile(TOKEN_PREFIX + "[A-Za-z0-9_-]{43}")


@dataclass(frozen=True, slots=True)
class Principal:
    """A caller.

    Attributes:
        name: The token's name; for a token of an issuer, the issuer's name, a slash, and the
            caller's name there. At most 128 characters.
        grants: Everything that the token allows.
    """

    name: str
    grants: Grants

    @property
    def tables(self) -> Names:
        """The tables that exist for the caller; any scope on a table includes `read`."""
        return self.grants.of("read")

    def require(self, scope: str) -> None:
        """Make sure that the caller has a scope on at least one table or worker.

        Raises:
            ScopeMissingError: The token does not have it.
        """
        if not self.grants.of(scope):
            raise ScopeMissingError(scope, None)

    def require_everywhere(self, scope: str) -> None:
        """Make sure that the caller has a scope on everything.

        Raises:
            ScopeMissingError: The token does not have it.
        """
        if not self.grants.of(scope).every:
            raise ScopeMissingError(scope, None)

    def require_on(self, scope: str, name: str) -> None:
        """Make sure that the caller has a scope on a worker, or on a table that may be new.

        `name` may also be a pattern of tables, all of which the caller then needs the scope on.

        Raises:
            ScopeMissingError: The token does not have it.
        """
        self.require(scope)
        if name not in self.grants.of(scope):
            raise ScopeMissingError(scope, name)

    def require_on_some(self, scope: str, pattern: str) -> None:
        """Make sure that the caller has a scope on at least one name of a pattern.

        Raises:
            ScopeMissingError: The token does not have it.
        """
        self.require(scope)
        if not self.grants.of(scope).meet(pattern):
            raise ScopeMissingError(scope, pattern)

    def require_table(self, scope: str, name: str) -> None:
        """Make sure that the caller has a scope on a table.

        The answer does not depend on whether the table exists, and so does not reveal it.

        Raises:
            ScopeMissingError: The token does not have it.
            TableNotFoundError: The table does not exist for this caller.
        """
        self.require(scope)
        if name not in self.tables:
            raise TableNotFoundError(name)
        if name not in self.grants.of(scope):
            raise ScopeMissingError(scope, name)

    def require_report_on(self, table: str) -> None:
        """Make sure that the caller may report which files of a table its worker holds.

        A token that is granted nothing but workers sees no tables, and may report on all of them.

        Raises:
            TableNotFoundError: The table does not exist for this caller.
        """
        if self.tables and table not in self.tables:
            raise TableNotFoundError(table)

    def may_use(self, maker: str, table: str) -> bool:
        """Return whether the caller may use a plan that `maker` made of a table."""
        if table in self.grants.of("admin"):
            return True
        return maker == self.name and table in self.tables


# Every caller, if no tokens are required; no token has this name.
ANONYMOUS = Principal("anonymous", compiled(("admin",)))


@dataclass(frozen=True, slots=True)
class IdentifiedCaller:
    """The caller that a token identifies, and when the token expires; None if never."""

    principal: Principal
    expires_at: datetime | None


class TokenIssuers(Protocol):
    """Identify callers by tokens that trusted issuers sign."""

    async def find(self, token: str) -> IdentifiedCaller:
        """Return the caller that a token identifies.

        Raises:
            UnauthenticatedError: No trusted issuer made the token, or it is not valid.
            IssuerUnavailableError: Its issuer's keys are unknown, and cannot be fetched.
        """

    async def identify(self, token: str) -> Identity:
        """Return the identity that a token states, to be stored in place of the token.

        Raises:
            UnauthenticatedError: No trusted issuer made the token, or it is not valid.
            IssuerUnavailableError: Its issuer's keys are unknown, and cannot be fetched.
        """

    def caller_of(self, identity: Identity) -> IdentifiedCaller:
        """Return the caller that an identity names, with the grants of today's settings.

        Raises:
            UnauthenticatedError: The issuer is no longer trusted.
        """


class Authenticate:
    """Identify callers by the tokens that they send."""

    def __init__(
        self, tokens: TokenStore, issuers: TokenIssuers | None, clock: Clock, *, required: bool
    ) -> None:
        self._tokens = tokens
        self._issuers = issuers
        self._clock = clock
        self.required = required
        self._callers: TTLCache[str, IdentifiedCaller] = TTLCache(_MOST_KNOWN, _KNOWN_FOR_S)
        # A cache of its own, so that guessed tokens do not push out tokens in use.
        self._unknown: TTLCache[str, None] = TTLCache(_MOST_KNOWN, _KNOWN_FOR_S)

    async def __call__(self, token: str | None) -> Principal:
        """Return the caller that sent a token.

        Raises:
            NoTokenError: No token was sent.
            UnauthenticatedError: The token is not valid; the error does not say why.
            IssuerUnavailableError: Its issuer's keys are unknown, and cannot be fetched.
            StoreUnavailableError: The database does not answer.
        """
        if not self.required:
            return ANONYMOUS
        if token is None:
            raise NoTokenError
        digest = digest_of(token)
        caller = self._callers.get(digest)
        if caller is None:
            caller = await self._find(token, digest)
            self._callers[digest] = caller
        if caller.expires_at is not None and self._clock() >= caller.expires_at:
            raise UnauthenticatedError
        return caller.principal

    async def _find(self, token: str, digest: str) -> IdentifiedCaller:
        if not is_ours(token):
            if self._issuers is None:
                raise UnauthenticatedError
            return await self._issuers.find(token)
        if digest in self._unknown:
            raise UnauthenticatedError
        record = await self._tokens.find(digest)
        if record is None or not record.is_valid(self._clock()):
            self._unknown[digest] = None
            raise UnauthenticatedError
        return caller_of(record)


def caller_of(token: Token) -> IdentifiedCaller:
    """Return the caller that one of Windrow's own tokens identifies."""
    return IdentifiedCaller(
        Principal(token.name, compiled((*token.scopes, *token.grants))), token.expires_at
    )


def is_ours(token: str) -> bool:
    """Return whether a token looks like one of Windrow's own."""
    return _TOKEN.fullmatch(token) is not None


def digest_of(token: str) -> str:
    """Return the digest under which a token is stored.

    A slow hash would protect nothing: 32 random bytes cannot be guessed from a digest. The time
    that a search by digest takes reveals nothing useful either, since a guesser cannot choose the
    digest's first characters.
    """
    return hashlib.sha256(token.encode()).hexdigest()
