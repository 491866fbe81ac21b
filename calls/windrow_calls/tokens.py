"""Tokens of callers: make, list and revoke them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from urllib.parse import quote

from windrow_calls.arguments import checked
from windrow_calls.listing import Listing
from windrow_calls.transport import Calls, read_answer
from windrow_core.models import NewToken, TokenInfo, TokenPage, TokenRequest


class TokenCalls(Calls):
    """Calls about tokens; they need the scope `admin` on everything."""

    def create_token(
        self,
        name: str,
        *,
        scopes: Sequence[str] = (),
        grants: Sequence[str] = (),
        expires_in: timedelta | None = None,
    ) -> NewToken:
        """Create a token and return it with its secret, which is shown only this once.

        Args:
            name: Name of the caller; tokens with the same name belong to the same caller.
            scopes: What the token allows on everything: `read`, `write`, `worker`, `admin`.
            grants: What the token allows on some tables, such as `write:sales.*`.
            expires_in: How long the token is valid; by default until it is revoked.

        Returns:
            The token. Its secret is None if the answer to an earlier attempt was lost; then revoke
            the token, and create another.

        Raises:
            InvalidArgumentError: The name, a scope or the lifetime is not valid.
            ProblemError: The coordinator refused a name or a grant.

        Example:
            from datetime import timedelta

            token = client.create_token("ana", grants=["read:sales.*"], expires_in=timedelta(days=90))
            token.token
        """
        arguments: dict[str, Any] = {"name": name, "scopes": list(scopes), "grants": list(grants)}
        if expires_in is not None:
            arguments["expires_in_seconds"] = int(expires_in.total_seconds())
        request = checked(TokenRequest, arguments)
        answer = self._transport.call("POST", "/tokens", body=request.model_dump_json())
        return read_answer(NewToken, answer)

    def tokens(self) -> Listing[TokenInfo]:
        """Return tokens by name, including those that ended in the last 30 days.

        Example:
            client.tokens()
        """
        return self._transport.listing(TokenPage, "tokens", "/tokens")

    def revoke_token(self, token_id: str) -> TokenInfo:
        """Revoke a token: it is refused from now on, and within seconds on every replica.

        Raises:
            NotFoundError: No token has this id.

        Example:
            client.revoke_token(token.token_id)
        """
        path = f"/tokens/{quote(token_id, safe='')}"
        return read_answer(TokenInfo, self._transport.call("DELETE", path))
