"""Browser sessions: who has signed in, and what they may do now."""

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
    caller_of,
    digest_of,
    is_ours,
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
    """The user of a browser.

    Attributes:
        principal: The caller.
        token_id: Id of the token with which the session began; None if it is not one of
            Windrow's own.
        expires_at: When the session ends; None if nobody needs a session.
    """

    principal: Principal
    token_id: str | None
    expires_at: datetime | None


class Sessions:
    """Begin sessions, find their users, and end them."""

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
        self._users: TTLCache[str, SignedIn] = TTLCache(_MOST_KNOWN, _KNOWN_FOR_S)

    async def begin(self, token: str) -> tuple[Session, str]:
        """Begin a session for the sender of a token; return it with the secret for the browser.

        Raises:
            UnauthenticatedError: The token is not valid.
            IssuerUnavailableError: Its issuer's keys are unknown, and cannot be fetched.
        """
        if not is_ours(token):
            if self._issuers is None:
                raise UnauthenticatedError
            return await self.begin_of(await self._issuers.identify(token))
        digest = digest_of(token)
        caller = caller_of(await self._valid_token(digest))
        return await self._begin(caller.principal.name, digest, caller.expires_at)

    async def begin_of(self, identity: Identity) -> tuple[Session, str]:
        """Begin a session for an identity; return it with the secret for the browser.

        Raises:
            UnauthenticatedError: The issuer is not trusted.
            NothingGrantedError: The caller may do nothing.
        """
        principal = self._principal_of(identity)
        if not any(principal.grants.of(scope) for scope in SCOPES):
            raise NothingGrantedError(principal.name)
        return await self._begin(principal.name, identity, identity.expires_at)

    async def find(self, secret: str | None) -> SignedIn:
        """Return the user of the browser that sent a secret.

        Raises:
            UnauthenticatedError: The browser has no session, or its session has ended.
        """
        if not self._required:
            return SignedIn(ANONYMOUS, None, None)
        if secret is None or not _SECRET.fullmatch(secret):
            raise UnauthenticatedError
        digest = digest_of(secret)
        user = self._users.get(digest)
        if user is None:
            user = await self._look_up(digest)
            self._users[digest] = user
        if user.expires_at is None or self._clock() >= user.expires_at:
            raise UnauthenticatedError
        return user

    async def end(self, secret: str | None) -> None:
        """End the session of a browser, if it has one."""
        if secret is not None:
            digest = digest_of(secret)
            await self._sessions.remove(digest)
            self._users.pop(digest, None)

    async def current(self, limit: int) -> Sequence[Session]:
        """Return the sessions that have not ended, the newest first."""
        return await self._sessions.current(self._clock(), limit)

    async def end_all_of(self, principal: str) -> int:
        """End all sessions of a caller, within seconds on all replicas; return how many."""
        count = await self._sessions.remove_all_of(principal)
        digests = [
            digest for digest, user in self._users.items() if user.principal.name == principal
        ]
        for digest in digests:
            self._users.pop(digest, None)
        return count

    async def _begin(
        self, principal: str, proof: str | Identity, until: datetime | None
    ) -> tuple[Session, str]:
        now = self._clock()
        session = Session(
            principal=principal,
            proof=proof,
            created_at=now,
            expires_at=now + LONGEST if until is None else min(now + LONGEST, until),
        )
        # Never reuse a secret that the browser has: somebody else may have put it there.
        secret = secrets.token_urlsafe(32)
        await self._sessions.add(session, digest_of(secret), _MOST_EACH)
        return session, secret

    async def _look_up(self, digest: str) -> SignedIn:
        session = await self._sessions.find(digest)
        if session is None:
            raise UnauthenticatedError
        if isinstance(session.proof, Identity):
            return SignedIn(self._principal_of(session.proof), None, session.expires_at)
        token = await self._valid_token(session.proof)
        return SignedIn(caller_of(token).principal, token.token_id, session.expires_at)

    async def _valid_token(self, digest: str) -> Token:
        token = await self._tokens.find(digest)
        if token is None or not token.is_valid(self._clock()):
            raise UnauthenticatedError
        return token

    def _principal_of(self, identity: Identity) -> Principal:
        if self._issuers is None:
            raise UnauthenticatedError
        return self._issuers.caller_of(identity).principal
