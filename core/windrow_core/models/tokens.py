"""Wire models of callers' tokens."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from windrow_core.models.base import Answer, Request, Whole

MAX_GRANTS = 100
MAX_TOKEN_DAYS = 3_650
TokenScope = Literal["read", "write", "worker", "admin"]
Grant = Annotated[str, StringConstraints(max_length=300)]


class TokenRequest(Request):
    """A request to make a token; it needs a scope or a grant."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=128)] = Field(
        description="Name of the caller. Tokens with the same name belong to the same caller."
    )
    scopes: list[TokenScope] = Field(
        default=[], max_length=4, description="What the token allows on everything."
    )
    grants: list[Grant] = Field(
        default=[],
        max_length=MAX_GRANTS,
        description="What it allows on some tables, such as `read:sales.orders` or "
        "`write:sales.*`; `worker:NAME` lets it speak only for that worker.",
    )
    expires_in_seconds: Annotated[int, Whole(1, MAX_TOKEN_DAYS * 86_400)] | None = Field(
        default=None, description="How long it is valid; by default until it is revoked."
    )


class TokenInfo(Answer):
    """A token without its secret."""

    token_id: str
    name: str
    scopes: list[str]
    grants: list[str]
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None


class NewToken(TokenInfo):
    """A token that was just made."""

    token: str | None = Field(
        description="The secret, which callers send. It is shown only this once: a repeated "
        "request gets null."
    )


class TokenPage(Answer):
    """One page of tokens, by name."""

    tokens: list[TokenInfo]
    next_page_token: str | None = None
