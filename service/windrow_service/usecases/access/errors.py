"""Errors of callers and their tokens.

* UseCaseError
  + NotFoundError
    - TokenNotFoundError
  + UnauthenticatedError
  + ScopeMissingError
  + InvalidTokenError
"""

from __future__ import annotations

from windrow_service.usecases.errors import NotFoundError, UseCaseError


class UnauthenticatedError(UseCaseError):
    """A caller sent no token that is valid.

    Whether it is missing, unknown, expired or revoked is not said: it would tell whoever tries
    tokens that one of them had been good.
    """

    def __str__(self) -> str:
        return (
            "a valid bearer token is needed: send `Authorization: Bearer ...` with one of "
            "`windrow token create` that has neither expired nor been revoked"
        )


class ScopeMissingError(UseCaseError):
    """A caller's token does not allow what they ask for."""

    def __init__(self, scope: str) -> None:
        super().__init__(scope)
        self.scope = scope

    def __str__(self) -> str:
        return (
            f"the token does not have the scope {self.scope!r}, which this call needs: use one "
            f"made with `windrow token create NAME --scope {self.scope}`"
        )


class TokenNotFoundError(NotFoundError):
    """No token has this id."""

    def __init__(self, token_id: str) -> None:
        super().__init__(token_id)
        self.token_id = token_id

    def __str__(self) -> str:
        return f"no token {self.token_id!r}: `windrow token list` shows the ids"


class InvalidTokenError(UseCaseError):
    """A token cannot be made as asked for."""
