"""Sessions of browsers: who signed in, and what they may do now."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from cachetools import TTLCache

from windrow_service.usecases.access.authenticate import (
    ANONYMOUS,
    Principal,
    TokenIssuers,
    digest_of,
    is_ours,
    known_by,
)
from windrow_service.usecases.access.errors import NothingGrantedError, UnauthenticatedError
from windrow_service.usecases.access.grants import SCOPES
from windrow_service.usecases.access.ports import (
    Identity,
    Session,
    SessionStore,
    Token,
    TokenStore,
)

if TYPE_CHECKING:
    from windrow_service.usecases.ports import Clock

LONGEST = timedelta(hours=12)
# So that nobody fills the database by signing in again and again.
_MOST_EACH = 20
# How long a session that ended elsewhere, or whose token was revoked, may still be accepted.
_KNOWN_FOR_S = 5.0
_MOST_KNOWN = 10_000
_SECRET = re.compile("[A-Za-z0-9_-]{43}")


@dataclass(frozen=True, slots=True)
class SignedIn:
    """Who uses a browser.

    Attributes:
        principal: The caller.
        token_id: Of the token with which the session began, if it is kept here.
        expires_at: When the session ends; None if there is none, because nobody needs one.
    """

    principal: Principal
    token_id: str | None
    expires_at: datetime | None


class Sessions:
    """Begin sessions, find who they are of, and end them.

    Args:
        sessions: Where they are kept.
        tokens: Where tokens are kept.
        issuers: Check tokens that are not kept; None if none are accepted.
        clock: Says what has expired.
        required: Whether callers need to sign in.
    """

    def __init__(
        self,
        sessions: SessionStore,
        tokens: TokenStore,
        issuers: TokenIssuers | None,
        clock: Clock,
        *,
        required: bool,
    ) -> None:
        self._sessions = sessions
        self._tokens = tokens
        self._issuers = issuers
        self._clock = clock
        self._required = required
        self._found: TTLCache[str, SignedIn] = TTLCache(_MOST_KNOWN, _KNOWN_FOR_S)

    async def begin(self, token: str) -> tuple[Session, str]:
        """Begin a session of who sent a token; return it with the secret for the browser.

        Raises:
            UnauthenticatedError: The token is not valid.
            IssuerUnavailableError: Its issuer's keys are unknown, and cannot be fetched.
        """
        if not is_ours(token):
            if self._issuers is None:
                raise UnauthenticatedError
            return await self.begin_of(await self._issuers.identify(token))
        digest = digest_of(token)
        known = known_by(await self._valid(digest))
        return await self._kept(known.principal.name, digest, known.expires_at)

    async def begin_of(self, identity: Identity) -> tuple[Session, str]:
        """Begin a session of whom an issuer named; return it with the secret for the browser.

        Raises:
            UnauthenticatedError: The issuer is not trusted.
            NothingGrantedError: The caller may do nothing.
        """
        principal = self._known(identity)
        if not any(principal.grants.of(scope) for scope in SCOPES):
            raise NothingGrantedError(principal.name)
        return await self._kept(principal.name, identity, identity.expires_at)

    async def find(self, secret: str | None) -> SignedIn:
        """Return who uses a browser that keeps a secret.

        Raises:
            UnauthenticatedError: It has no session, or one that has ended.
        """
        if not self._required:
            return SignedIn(ANONYMOUS, None, None)
        if secret is None or not _SECRET.fullmatch(secret):
            raise UnauthenticatedError
        digest = digest_of(secret)
        found = self._found.get(digest)
        if found is None:
            found = await self._look_up(digest)
            self._found[digest] = found
        if found.expires_at is None or self._clock() >= found.expires_at:
            raise UnauthenticatedError
        return found

    async def end(self, secret: str | None) -> None:
        """End the session of a browser, if it has one."""
        if secret is not None:
            digest = digest_of(secret)
            await self._sessions.remove(digest)
            self._found.pop(digest, None)

    async def current(self, limit: int) -> Sequence[Session]:
        """Return the sessions that go on, the newest first."""
        return await self._sessions.current(self._clock(), limit)

    async def end_all_of(self, principal: str) -> int:
        """End the sessions of a caller, everywhere within seconds; return how many there were."""
        count = await self._sessions.remove_all_of(principal)
        known = [one for one, found in self._found.items() if found.principal.name == principal]
        for digest in known:
            self._found.pop(digest, None)
        return count

    async def _kept(
        self, principal: str, proof: str | Identity, until: datetime | None
    ) -> tuple[Session, str]:
        now = self._clock()
        session = Session(
            principal=principal,
            proof=proof,
            created_at=now,
            expires_at=now + LONGEST if until is None else min(now + LONGEST, until),
        )
        # Always a new one, whatever the browser kept before: somebody else may have put it there.
        secret = secrets.token_urlsafe(32)
        await self._sessions.add(session, digest_of(secret), _MOST_EACH)
        return session, secret

    async def _look_up(self, digest: str) -> SignedIn:
        session = await self._sessions.find(digest)
        if session is None:
            raise UnauthenticatedError
        if isinstance(session.proof, Identity):
            return SignedIn(self._known(session.proof), None, session.expires_at)
        token = await self._valid(session.proof)
        return SignedIn(known_by(token).principal, token.token_id, session.expires_at)

    async def _valid(self, digest: str) -> Token:
        token = await self._tokens.find(digest)
        if token is None or not token.is_valid(self._clock()):
            raise UnauthenticatedError
        return token

    def _known(self, identity: Identity) -> Principal:
        if self._issuers is None:
            raise UnauthenticatedError
        return self._issuers.known(identity).principal
