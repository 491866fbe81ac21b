"""The access page: who changed what, tokens, and who is signed in; for `admin` only."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from datetime import timedelta
from http import HTTPStatus
from typing import Annotated

from fastapi import Query, Request
from fastapi.responses import Response

from windrow_service.api.authentication import PrincipalDep
from windrow_service.api.authorization import ADMIN, GuardedRouter
from windrow_service.api.caller_tokens import TokenIdPath
from windrow_service.api.dashboard.signing_in import changes_of
from windrow_service.api.html.rendering import ROOT, SIGN_IN, page, redirect
from windrow_service.api.parameters import NO_NULLS
from windrow_service.api.services import AccessDep, AccessServices, OperationsDep
from windrow_service.logs import get_logger
from windrow_service.usecases.access.errors import InvalidTokenError
from windrow_service.usecases.access.ports import Token
from windrow_service.usecases.audit import AuditLog
from windrow_service.usecases.errors import IdempotencyKeyReusedError, RepeatedRequestError
from windrow_service.usecases.ports import Once

router = GuardedRouter(include_in_schema=False)
_TOKENS, _CHANGES, _SESSIONS = 100, 50, 100
# A token may have a hundred grants.
_GRANTS = 10
_log = get_logger(__name__)
_NEWEST = 2**63 - 1
_ACCESS = f"{ROOT}/access"
# How long a new token may last, in days or for ever.
_LIFETIMES = {
    "1": "1 day",
    "7": "7 days",
    "30": "30 days",
    "90": "90 days",
    "365": "1 year",
    "never": "never",
}


@router.get(_ACCESS, dependencies=[ADMIN])
async def show_access(
    request: Request,
    access: AccessDep,
    operations: OperationsDep,
    table: Annotated[str, Query(max_length=256, pattern=NO_NULLS)] = "",
    who: Annotated[str, Query(max_length=128, pattern=NO_NULLS)] = "",
    before: Annotated[int, Query(ge=1, le=_NEWEST)] = _NEWEST,
    after: Annotated[str, Query(max_length=256, pattern=NO_NULLS)] = "",
) -> Response:
    """Show the latest changes, the tokens from a name on, and who is signed in."""
    return await _access_page(request, access, operations.audit, table, who, before, after)


@router.post(
    f"{_ACCESS}/tokens",
    # Its name in the audit log.
    operation_id="create_token",
    dependencies=[ADMIN],
)
async def create_token(
    request: Request, access: AccessDep, operations: OperationsDep, principal: PrincipalDep
) -> Response:
    """Create a token, and show its secret this one time."""
    form = await changes_of(request)
    try:
        token, secret = await access.tokens.create(
            form.get("name", ""),
            form.get("grants", "").split(),
            _lifetime(form.get("days", "")),
            _once(principal.name, form),
        )
    except (InvalidTokenError, IdempotencyKeyReusedError) as error:
        is_new = isinstance(error, InvalidTokenError)
        refusal = (
            str(error) if is_new else "this form has already made another token: send it again"
        )
        answer = await _access_page(
            request,
            access,
            operations.audit,
            refusal=refusal,
            field=error.field if isinstance(error, InvalidTokenError) else "",
            form=form,
        )
        answer.status_code = HTTPStatus.UNPROCESSABLE_ENTITY
        return answer
    except RepeatedRequestError as made:
        # The page was loaded again, or the button was pressed twice.
        return await page(request, "token.html", token_id=made.answer, secret=None)
    return await page(request, "token.html", token_id=token.token_id, secret=secret, token=token)


@router.post(
    f"{_ACCESS}/tokens/{{token_id}}/revoke", operation_id="revoke_token", dependencies=[ADMIN]
)
async def revoke_token(token_id: TokenIdPath, request: Request, access: AccessDep) -> Response:
    """Revoke a token; the one that the caller signed in with, only after a confirmation."""
    form = await changes_of(request)
    is_own = request.state.signed_in.token_id == token_id
    if is_own and form.get("sure") != "yes":
        return await page(
            request,
            "revoke_own.html",
            token_id=token_id,
            is_last=not await _has_other_admin(access, token_id),
        )
    await access.tokens.revoke(token_id)
    to = _ACCESS
    if is_own:
        await access.sessions.end(access.browsers.session_in(request))
        to = SIGN_IN
    return redirect(request, to)


@router.post(f"{_ACCESS}/sign-out", dependencies=[ADMIN])
async def sign_out_caller(request: Request, access: AccessDep, principal: PrincipalDep) -> Response:
    """End the sessions of a caller in all browsers."""
    form = await changes_of(request)
    caller = form.get("caller", "")
    count = await access.sessions.end_all_of(caller)
    _log.info("sessions were ended", of=caller[:128], count=count, principal=principal.name)
    return redirect(request, _ACCESS)


async def _access_page(
    request: Request,
    access: AccessServices,
    audit: AuditLog,
    table: str = "",
    who: str = "",
    before: int = _NEWEST,
    after: str = "",
    *,
    refusal: str = "",
    field: str = "",
    form: Mapping[str, str] | None = None,
) -> Response:
    changes = await audit.page(before, _CHANGES, table=table or None, principal=who or None)
    tokens = await access.tokens.page(after, _TOKENS)
    last = tokens[-1] if tokens.more else None
    return await page(
        request,
        "access.html",
        table=table,
        who=who,
        changes=changes,
        older=changes[-1].number if changes.more else None,
        tokens=tokens,
        after=after,
        next_after=None if last is None else f"{last.name} {last.token_id}",
        most_grants=_GRANTS,
        sessions=await access.sessions.current(_SESSIONS),
        lifetimes=_LIFETIMES,
        key=secrets.token_hex(16),
        refused=refusal,
        field=field,
        asked={"name": "", "grants": "", "days": "90", **(form or {})},
    )


def _lifetime(days: str) -> timedelta | None:
    if days not in _LIFETIMES:
        raise InvalidTokenError("a token needs an end, or `never`: choose when it expires", "days")
    return None if days == "never" else timedelta(days=int(days))


def _once(principal: str, form: Mapping[str, str]) -> Once:
    """Return the key that keeps a form sent twice from making two tokens."""
    fields = repr([form.get(name) for name in ("name", "grants", "days")])
    return Once(
        principal=principal,
        # Unlike any key of a call, which cannot contain a space.
        key=f"page {form.get('key', '')[:64]}",
        fingerprint=hashlib.sha256(fields.encode()).hexdigest(),
        answer=_token_id,
    )


def _token_id(token: Token) -> str:
    return token.token_id


async def _has_other_admin(access: AccessServices, token_id: str) -> bool:
    now = access.tokens.clock()
    return any(
        token.token_id != token_id and "admin" in token.scopes and token.is_valid(now)
        for token in await access.tokens.list()
    )
