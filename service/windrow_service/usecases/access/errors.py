"""Errors of callers and their tokens."""

from __future__ import annotations

from dataclasses import dataclass

from windrow_core.errors import Call, Fault
from windrow_service.usecases.errors import (
    ForbiddenError,
    InvalidError,
    NotFoundError,
    UnavailableError,
    UseCaseError,
)


class UnauthenticatedError(UseCaseError):
    """Token required.

    The error does not say whether the token is unknown, expired or revoked: that would tell an
    attacker that it had once been valid.
    """

    fault = Fault.UNAUTHENTICATED
    message = "the bearer token is not valid here: {remedy}"
    remedy = (
        "{call} a token from `windrow token create` that has neither expired nor been revoked, or "
        "from an issuer that the coordinator trusts"
    )
    call = Call("create_token")


class NoTokenError(UnauthenticatedError):
    """Token required.

    None was sent.
    """

    slug = "unauthenticated"
    message = "this coordinator requires a bearer token, and none was sent: {remedy}"


@dataclass(eq=False)
class TooManyGuessesError(UseCaseError):
    """Too many wrong tokens.

    They came from the caller's address, or with its client id.
    """

    fault = Fault.TOO_OFTEN
    retry_after_s: int
    message = "too many wrong tokens came from this address or client id: {remedy}"
    remedy = "make sure that the token is right, and try again in {retry_after_s} s"


@dataclass(eq=False)
class IssuerUnavailableError(UnavailableError):
    """Issuer is not available.

    Attributes:
        issuer: Its name in the settings.
    """

    issuer: str
    retry_after_s = 5
    message = "issuer {issuer!r} does not answer as it should: {remedy}"
    remedy = "make sure that the coordinator can reach it, then try again"


class SignInNotOfferedError(NotFoundError):
    """No such way to sign in."""

    message = "there is no such way to sign in: {remedy}"
    remedy = "use one of those that the sign-in page offers"


class SignInOutdatedError(UseCaseError):
    """Sign-in is outdated."""

    fault = Fault.OUTDATED
    message = (
        "this sign-in began too long ago or in another browser, or is already finished: {remedy}"
    )
    remedy = "sign in again"


@dataclass(eq=False)
class SignInRefusedError(ForbiddenError):
    """Issuer refused the sign-in.

    Attributes:
        issuer: Its name in the settings.
    """

    issuer: str
    message = "{issuer!r} did not let you in, or you did not allow it: {remedy}"
    remedy = "sign in again, or ask its administrator"


@dataclass(eq=False)
class SignInUnconfirmedError(ForbiddenError):
    """Issuer did not confirm the sign-in.

    An issuer does not confirm who signed in, or does so in a way that cannot be trusted.

    Attributes:
        issuer: Its name in the settings.
    """

    issuer: str
    message = "{issuer!r} did not confirm who you are: {remedy}"
    remedy = "sign in again; if that does not help, the coordinator's log says why"


@dataclass(eq=False)
class NothingGrantedError(ForbiddenError):
    """Nothing is granted.

    Attributes:
        principal: The caller.
    """

    principal: str
    message = "you are signed in as {principal!r}, but have no rights here: {remedy}"
    remedy = "ask whoever runs this coordinator for a grant to you or to one of your groups"


@dataclass(eq=False)
class ScopeMissingError(ForbiddenError):
    """Token lacks a scope.

    Attributes:
        scope: The missing scope.
        on: Name of the table or worker that the scope is missing for; None if it is missing for
            all of them, or if the call is about all of them.
    """

    scope: str
    on: str | None

    def __str__(self) -> str:
        if self.on is None:
            return (
                f"the token does not have the scope {self.scope!r}, which this call needs: use one "
                f"made with `windrow token create NAME --scope {self.scope}`"
            )
        what = "worker" if self.scope == "worker" else "table"
        return (
            f"the token does not have the scope {self.scope!r} on {what} {self.on!r}: use one made "
            f"with `windrow token create NAME --grant {self.scope}:{self.on}`"
        )


@dataclass(eq=False)
class TokenNotFoundError(NotFoundError):
    """Token not found."""

    token_id: str
    message = "no token {token_id!r}: {remedy}"
    remedy = "`windrow token list` shows the ids"


@dataclass(eq=False)
class InvalidTokenError(InvalidError):
    """Token cannot be made.

    Attributes:
        reason: What is wrong about it, and what to do.
        field: Which part of it is wrong: its `name`, its `grants` or its `days`.
    """

    reason: str
    field: str = "grants"
    slug = "invalid-token-request"
    message = "{reason}"
