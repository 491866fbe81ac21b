"""Errors of callers and their tokens.

* UseCaseError
  + NotFoundError
    - TokenNotFoundError
  + UnauthenticatedError
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
        "expired nor been revoked"
    )


@dataclass(eq=False)
class ScopeMissingError(UseCaseError):
    """A caller's token does not allow the call."""

    scope: str
    message = "the token does not have the scope {scope!r}, which this call needs: {remedy}"
    remedy = "use one made with `windrow token create NAME --scope {scope}`"


@dataclass(eq=False)
class TokenNotFoundError(NotFoundError):
    """No token has this id."""

    token_id: str
    message = "no token {token_id!r}: {remedy}"
    remedy = "`windrow token list` shows the ids"


class InvalidTokenError(UseCaseError):
    """A token cannot be made as requested."""
