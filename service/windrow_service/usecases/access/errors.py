"""Errors of callers and their tokens.

* UseCaseError
  + NotFoundError
    - TokenNotFoundError
  + UnauthenticatedError
  + AuthoritiesError
  + IssuerUnavailableError
  + ScopeMissingError
  + InvalidTokenError
"""

from __future__ import annotations

from dataclasses import dataclass

from windrow_service.usecases.errors import NotFoundError, UseCaseError


class UnauthenticatedError(UseCaseError):
    """A caller sent no token that is valid.

    The error does not say whether it is missing, unknown, expired or revoked: that would tell
    an attacker that a token had once been valid.
    """

    message = "a valid bearer token is needed: {remedy}"
    remedy = (
        "send `Authorization: Bearer ...` with one of `windrow token create` that has neither "
        "expired nor been revoked, or with one of an issuer that the coordinator trusts"
    )


@dataclass(eq=False)
class AuthoritiesError(UseCaseError):
    """The certificates by which an issuer would be trusted cannot be read."""

    issuer: str
    file: str
    reason: str
    message = (
        "the certificates for issuer {issuer!r} cannot be read from {file!r} ({reason}): {remedy}"
    )
    remedy = "correct its ca_file"


@dataclass(eq=False)
class IssuerUnavailableError(UseCaseError):
    """The keys with which a token could be checked are not known.

    Attributes:
        issuer: What the coordinator calls the issuer of the token.
    """

    issuer: str
    retry_after_s = 5
    message = "the keys of issuer {issuer!r} cannot be fetched: {remedy}"
    remedy = "make sure that the coordinator can reach it, then try again"


@dataclass(eq=False)
class ScopeMissingError(UseCaseError):
    """A caller's token does not allow the call.

    Attributes:
        scope: What it lacks.
        on: The name of the table or worker for which it lacks it; None if it lacks it for all, or
            if the call is about all.
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
    """No token has this id."""

    token_id: str
    message = "no token {token_id!r}: {remedy}"
    remedy = "`windrow token list` shows the ids"


class InvalidTokenError(UseCaseError):
    """A token cannot be made as requested."""
