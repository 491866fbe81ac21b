"""Signed tokens (JWT): checked, and turned into callers."""

from __future__ import annotations

import hmac
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

import jwt

from windrow_service.issuers.keys import IssuerKeys
from windrow_service.issuers.trust import Issuer
from windrow_service.logs import get_logger
from windrow_service.usecases.access.authenticate import IdentifiedCaller, Principal
from windrow_service.usecases.access.errors import (
    InvalidTokenError,
    IssuerUnavailableError,
    UnauthenticatedError,
)
from windrow_service.usecases.access.grants import compiled, grant_of
from windrow_service.usecases.access.ports import Identity

_MAX_LENGTH = 8192
# The issuer sends ID tokens, not callers; they may list hundreds of groups.
_MAX_ID_TOKEN = 65_536
_TOKEN = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")
# The database keeps names of this length; only visible characters, because logs show names.
_NAME = re.compile("[!-~]{1,128}")
_MAX_GROUPS = 1_000
_ID_TOKEN_TYPES = (None, "jwt")
_TYPES = (*_ID_TOKEN_TYPES, "at+jwt", "application/at+jwt")
# Errors that a token can cause, including those that the library does not expect.
_UNREADABLE = (
    jwt.PyJWTError,
    AttributeError,
    OSError,
    OverflowError,
    RecursionError,
    TypeError,
    ValueError,
)
_log = get_logger(__name__)


class SignedTokens:
    """Identifies callers by access tokens of trusted issuers.

    Args:
        issuers: Issuers, by their names in the settings, which begin the names of their callers.
        seconds: A clock that never goes back.
    """

    def __init__(
        self, issuers: Mapping[str, Issuer], seconds: Callable[[], float] = time.monotonic
    ) -> None:
        self._issuers = {issuer.url: (name, issuer) for name, issuer in issuers.items()}
        self._keys = {
            issuer.url: IssuerKeys(name, issuer, seconds) for name, issuer in issuers.items()
        }

    async def aclose(self) -> None:
        """Close the connections to issuers."""
        for keys in self._keys.values():
            await keys.aclose()

    async def refresh(self) -> None:
        """Fetch the keys of all issuers."""
        failed = None
        for keys in self._keys.values():
            try:
                await keys.refresh()
            except IssuerUnavailableError as error:
                failed = error
        if failed is not None:
            raise failed

    async def find(self, token: str) -> IdentifiedCaller:
        """Return the caller that a token identifies."""
        return self.caller_of(await self.identify(token))

    def caller_of(self, identity: Identity) -> IdentifiedCaller:
        """Return the caller that an identity names, with the grants of today's settings."""
        if identity.issuer not in self._issuers:
            raise UnauthenticatedError
        name, issuer = self._issuers[identity.issuer]
        try:
            return IdentifiedCaller(_principal(name, issuer, identity.claims), identity.expires_at)
        except _UNREADABLE:
            raise UnauthenticatedError from None

    async def identify(self, token: str) -> Identity:
        """Return the identity that a token states, to be stored in place of the token."""
        if len(token) > _MAX_LENGTH:
            raise UnauthenticatedError
        head, issuer_url = _unverified_parts(token)
        if not isinstance(issuer_url, str) or issuer_url not in self._issuers:
            raise UnauthenticatedError
        name, issuer = self._issuers[issuer_url]
        return await self._checked(name, issuer, token, head, _TYPES, issuer.audience)

    async def identify_by_id_token(
        self, name: str, token: str, client_id: str, nonce: str
    ) -> Identity:
        """Return the identity in the ID token of a sign-in.

        Args:
            name: Name of the issuer in the settings.
            token: The ID token.
            client_id: The client that the token must be for.
            nonce: Nonce of the sign-in that the token must belong to.
        """
        (issuer,) = (issuer for other, issuer in self._issuers.values() if other == name)
        if len(token) > _MAX_ID_TOKEN:
            raise UnauthenticatedError
        head, _ = _unverified_parts(token)

        def check_sign_in(claims: Mapping[str, Any]) -> None:
            value = claims.get("nonce")
            if not isinstance(value, str) or not hmac.compare_digest(
                value.encode(), nonce.encode()
            ):
                raise ValueError("the token belongs to another sign-in")
            several = isinstance(claims["aud"], list) and len(claims["aud"]) > 1
            if claims.get("azp", None if several else client_id) != client_id:
                raise ValueError("the token was given to another client")

        return await self._checked(
            name, issuer, token, head, _ID_TOKEN_TYPES, client_id, check_sign_in
        )

    async def _checked(
        self,
        name: str,
        issuer: Issuer,
        token: str,
        head: Mapping[str, Any],
        types: Sequence[str | None],
        audience: str,
        further: Callable[[Mapping[str, Any]], None] = lambda claims: None,
    ) -> Identity:
        key_id, kind = head.get("kid"), head.get("typ")
        if (
            not isinstance(key_id, str)
            or "crit" in head
            or (kind.lower() if isinstance(kind, str) else kind) not in types
        ):
            raise UnauthenticatedError
        key = await self._keys[issuer.url].find(key_id)
        if key is None:
            raise UnauthenticatedError
        try:
            claims = jwt.decode(
                token,
                key,
                # None of these works with a shared secret, whatever keys the issuer has.
                algorithms=issuer.algorithms,
                audience=audience,
                issuer=issuer.url,
                leeway=issuer.leeway,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
            further(claims)
            identity = _identity(issuer, claims)
            # Called here because, if the claims name no caller, the log then has the reason.
            _principal(name, issuer, identity.claims)
            return identity
        except _UNREADABLE as error:
            # The reason is for the issuer's operator, not for the caller.
            _log.info("a signed token was refused", issuer=name, why=type(error).__name__)
            raise UnauthenticatedError from None


def _unverified_parts(token: str) -> tuple[Mapping[str, Any], object]:
    """Return the head of a token and the issuer that it claims, neither of them checked."""
    if not _TOKEN.fullmatch(token):
        raise UnauthenticatedError
    try:
        head = jwt.get_unverified_header(token)
        return head, jwt.decode(token, options={"verify_signature": False}).get("iss")
    except _UNREADABLE:
        raise UnauthenticatedError from None


def _identity(issuer: Issuer, claims: Mapping[str, Any]) -> Identity:
    names = {"sub", issuer.name_claim, issuer.groups_claim, issuer.scopes_claim}
    return Identity(
        issuer=issuer.url,
        claims={name: value for name, value in claims.items() if name in names},
        expires_at=datetime.fromtimestamp(int(claims["exp"]), timezone.utc) + issuer.leeway,
    )


def _principal(name: str, issuer: Issuer, claims: Mapping[str, Any]) -> Principal:
    subject = claims.get(issuer.name_claim)
    # Names of Windrow's own tokens have no slash.
    principal = f"{name}/{subject}"
    if not isinstance(subject, str) or not subject or not _NAME.fullmatch(principal):
        raise ValueError("the claim names no caller")
    return Principal(principal, compiled(tuple(sorted(set(_grants(issuer, claims))))))


def _grants(issuer: Issuer, claims: Mapping[str, Any]) -> Iterator[str]:
    yield from issuer.subjects.get(claims["sub"], ())
    groups = claims.get(issuer.groups_claim)
    for group in groups[:_MAX_GROUPS] if isinstance(groups, list) else [groups]:
        if isinstance(group, str):
            yield from issuer.groups.get(group, ())
    if issuer.scopes_claim is not None:
        scopes = claims.get(issuer.scopes_claim)
        # By the standard, they are a text with spaces between them; some issuers send a list.
        for scope in scopes.split() if isinstance(scopes, str) else scopes or ():
            # Scopes of other services may be among them.
            if _is_grant(scope):
                yield scope


def _is_grant(text: str) -> bool:
    try:
        grant_of(text)
    except InvalidTokenError:
        return False
    return True
