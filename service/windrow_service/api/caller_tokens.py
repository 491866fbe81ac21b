"""Calls about callers' tokens: make one, list them, revoke one."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from typing import Annotated

from fastapi import Path, Response, status

from windrow_core.models import NewToken, TokenInfo, TokenPage, TokenRequest
from windrow_service.api.authorization import ADMIN, GuardedRouter
from windrow_service.api.idempotency import KeptAnswer, OnceDep
from windrow_service.api.parameters import ListPageDep, json_answer
from windrow_service.api.problems import problem_responses
from windrow_service.api.services import AccessDep
from windrow_service.usecases.access.ports import Token

router = GuardedRouter(tags=["tokens"])
_SECRETS = {"Cache-Control": "no-store"}

TokenIdPath = Annotated[
    str, Path(pattern="^[0-9a-f]{16}$", description="Id of the token; it is not secret.")
]


@router.post(
    "/tokens",
    operation_id="create_token",
    dependencies=[ADMIN],
    status_code=status.HTTP_201_CREATED,
    response_model=NewToken,
    responses=problem_responses(400, 413, 422, 503, 504),
)
async def create_token(request: TokenRequest, services: AccessDep, once: OnceDep) -> Response:
    """Create a token for a caller. Only this answer contains its secret.

    The database keeps only a digest of the secret. If the answer is lost, repeating the request
    with its `Idempotency-Key` makes no second token, but returns the id of the first: revoke it,
    and make another with a new key.
    """
    expires_in = request.expires_in_seconds
    token, secret = await services.tokens.create(
        request.name,
        [*request.scopes, *request.grants],
        None if expires_in is None else timedelta(seconds=expires_in),
        once(_new_token_answer),
    )
    return _new_token_answer(token, secret).response()


@router.get(
    "/tokens",
    operation_id="list_tokens",
    dependencies=[ADMIN],
    response_model=TokenPage,
    responses=problem_responses(404, 422, 503),
)
async def list_tokens(services: AccessDep, page: ListPageDep) -> Response:
    """List the tokens by name, a page at a time.

    A token that has expired or was revoked stays in the list for 30 days.
    """
    tokens = await services.tokens.page(page.after("tokens"), page.limit())
    return await json_answer(
        TokenPage(
            tokens=[_info(token) for token in tokens],
            next_page_token=page.next_token(
                "tokens", tokens, lambda last: f"{last.name} {last.token_id}"
            ),
        )
    )


@router.delete(
    "/tokens/{token_id}",
    operation_id="revoke_token",
    dependencies=[ADMIN],
    responses=problem_responses(404, 422, 503, 504),
)
async def revoke_token(token_id: TokenIdPath, services: AccessDep) -> TokenInfo:
    """Revoke a token: within five seconds, every replica refuses it.

    The token stays in the list for 30 days. Repeating the call changes nothing.
    """
    return _info(await services.tokens.revoke(token_id))


def _new_token_answer(token: Token, secret: str | None = None) -> KeptAnswer:
    new = NewToken(**_info(token).model_dump(), token=secret)
    return KeptAnswer(status=status.HTTP_201_CREATED, headers=_SECRETS, body=new.model_dump_json())


def _info(token: Token) -> TokenInfo:
    return TokenInfo.model_validate(asdict(token))
