"""Bearer tokens and browser sessions, and the ports of their stores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from windrow_service.usecases.ports import Once, Page


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A token's record; the token itself is stored nowhere.

    Attributes:
        token_id: Its id, which is not secret.
        name: Name of its user; tokens with the same name are one principal.
        scopes: The scopes that it has on everything, out of `SCOPES`.
        grants: The scopes that it has on some tables or workers, such as `read:sales.*`.
        created_at: When it was made.
        expires_at: When it expires; None if never.
        revoked_at: When it was revoked; None if it was not.
    """

    token_id: str
    name: str
    scopes: tuple[str, ...]
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    grants: tuple[str, ...] = ()

    def is_valid(self, now: datetime) -> bool:
        """Return whether the token has neither expired nor been revoked."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


class TokenStore(Protocol):
    """Tokens, by the digests of their secrets."""

    async def add(self, token: Token, digest: str, once: Once | None = None) -> None:
        """Keep a new token."""

    async def find(self, digest: str) -> Token | None:
        """Return the token with this digest, even if it has expired or was revoked."""

    async def list(self) -> Sequence[Token]:
        """Return all tokens by name, the oldest of each name first."""

    async def page(self, after: str, limit: int) -> Page[Token]:
        """Return at most `limit` tokens by name and id, after "NAME ID"; empty for the start."""

    async def reaching(self, table: str, now: datetime, after: str, limit: int) -> Page[Token]:
        """Return, as `page` does, the tokens that are valid now and allow something on a table."""

    async def revoke(self, token_id: str, now: datetime) -> Token:
        """Revoke a token; one that was revoked before keeps the time of its revocation.

        Raises:
            TokenNotFoundError: No token has this id.
        """

    async def purge(self, now: datetime) -> int:
        """Forget the tokens that ended 30 days before `now` or earlier; return how many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A caller as an issuer describes it.

    Attributes:
        issuer: The issuer's URL.
        claims: The claims that name the caller or decide its grants.
        expires_at: When the issuer stops vouching for the caller.
    """

    issuer: str
    claims: Mapping[str, Any]
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A browser in which somebody has signed in; the browser's secret is stored nowhere.

    Attributes:
        principal: Name of the caller.
        proof: How the caller signed in: the digest of one of Windrow's own tokens, or the
            identity that an issuer stated.
        created_at: When the session began.
        expires_at: When the session ends.
    """

    principal: str
    proof: str | Identity
    created_at: datetime
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingSignIn:
    """The state that a browser keeps while its user signs in at an issuer.

    Attributes:
        issuer: The issuer's name in the settings.
        state: The answer must carry it, as proof that it is meant for this browser.
        nonce: The ID token must carry it, as proof that it was made for this sign-in.
        verifier: Proves to the issuer that its code is redeemed by whoever asked for it.
    """

    issuer: str
    state: str
    nonce: str
    verifier: str


class SessionStore(Protocol):
    """Sessions, by the digests of their secrets."""

    async def add(self, session: Session, digest: str, most: int) -> None:
        """Store a new session; of its caller's sessions, keep only the `most` newest."""

    async def find(self, digest: str) -> Session | None:
        """Return the session with this digest, even if it has expired."""

    async def current(self, now: datetime, limit: int) -> Sequence[Session]:
        """Return the sessions that have not expired by `now`, the newest first."""

    async def remove(self, digest: str) -> None:
        """Forget a session, if there is one with this digest."""

    async def remove_all_of(self, principal: str) -> int:
        """Forget the sessions of a caller; return how many there were."""

    async def purge(self, now: datetime) -> int:
        """Forget the sessions that have expired by `now`; return how many."""
