"""The cache page: workers, and the rules that say which files they should hold."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from http import HTTPStatus

from fastapi import Request
from fastapi.responses import Response
from pydantic import ValidationError

from windrow_core.models import CACHE_RULE_PATTERN, CacheRuleDefinition
from windrow_service.api.authentication import PrincipalDep
from windrow_service.api.authorization import READ, WRITE, WRITE_TABLE, GuardedRouter
from windrow_service.api.dashboard.cache_worth import worth_of
from windrow_service.api.dashboard.commands import warm_command
from windrow_service.api.dashboard.lookups import looked_up
from windrow_service.api.dashboard.refused_fields import RefusedFieldError
from windrow_service.api.dashboard.signing_in import changes_of
from windrow_service.api.html.rendering import ROOT, page, redirect
from windrow_service.api.parameters import TableNamePath
from windrow_service.api.problems import describe
from windrow_service.api.services import CachesDep, CacheServices
from windrow_service.filters.errors import InvalidFilterError
from windrow_service.usecases.access.authenticate import Principal
from windrow_service.usecases.caches.errors import InvalidCacheRuleError
from windrow_service.usecases.errors import ConflictError
from windrow_service.usecases.tables.errors import TableNotFoundError

router = GuardedRouter(include_in_schema=False)
_PAGE = f"{ROOT}/cache"
_SHOWN = 200
# How long a new rule may last, in days or for ever.
_LIFETIMES = {"": "for ever", "1": "1 day", "7": "7 days", "30": "30 days", "365": "1 year"}
# The fields of the form that errors are about.
_FIELDS: Mapping[type[Exception], str] = {
    TableNotFoundError: "table",
    InvalidFilterError: "filter",
    InvalidCacheRuleError: "filter",
}


@router.get(_PAGE, dependencies=[READ])
async def show_caches(request: Request, services: CachesDep, principal: PrincipalDep) -> Response:
    """Show the live workers, those that fell silent, and the rules of the caller's tables."""
    return await _cache_page(request, services, principal)


@router.post(
    f"{_PAGE}/rules",
    # Its name in the audit log.
    operation_id="define_cache_rule",
    dependencies=[WRITE],
)
async def define_cache_rule(
    request: Request, services: CachesDep, principal: PrincipalDep
) -> Response:
    """Add a rule, or replace what the rule of this name marks."""
    form = await changes_of(request)
    table, rule = form.get("table", "").strip(), form.get("rule", "").strip()
    try:
        principal.require_table("write", table)
        if not re.fullmatch(CACHE_RULE_PATTERN, rule):
            raise RefusedFieldError(
                "rule", "a rule's name consists of letters, digits, `_`, `.` and `-`"
            )
        await services.define_rule(table, rule, _definition(services, form), None)
    except (
        RefusedFieldError,
        TableNotFoundError,
        InvalidFilterError,
        InvalidCacheRuleError,
        ConflictError,
    ) as error:
        answer = await _cache_page(request, services, principal, form, _refusals(error))
        answer.status_code = HTTPStatus.UNPROCESSABLE_ENTITY
        return answer
    return redirect(request, f"{_PAGE}#rules")


@router.post(
    f"{ROOT}/tables/{{name}}/cache-rules/remove",
    operation_id="delete_cache_rule",
    dependencies=[WRITE_TABLE],
)
async def delete_cache_rule(name: TableNamePath, request: Request, services: CachesDep) -> Response:
    """Remove a rule, after a confirmation."""
    form = await changes_of(request)
    rule = form.get("rule", "")
    if form.get("sure") != "yes":
        return await page(request, "remove_rule.html", table=name, rule=rule)
    await services.rules.delete(name, rule, None)
    return redirect(request, f"{_PAGE}#rules")


def _definition(services: CacheServices, form: Mapping[str, str]) -> CacheRuleDefinition:
    days = form.get("days", "")
    if days not in _LIFETIMES:
        raise RefusedFieldError("days", "choose how long the rule lasts")
    try:
        return CacheRuleDefinition.model_validate(
            {
                "filter": form.get("filter", "").strip(),
                "expires_at": services.clock() + timedelta(days=int(days)) if days else None,
                "max_bytes": form.get("max_bytes", "").strip() or None,
            }
        )
    except ValidationError as error:
        first = error.errors()[0]
        raise RefusedFieldError(str(first["loc"][0]), str(first["msg"])) from error


def _refusals(error: Exception) -> Mapping[str, str]:
    """Return why the form of a rule cannot be used, by field; without a name, all of it."""
    if isinstance(error, RefusedFieldError):
        return {error.name: str(error)}
    name = _FIELDS.get(type(error), "")
    return {name: str(describe(error).body["detail"])}


async def _cache_page(
    request: Request,
    services: CacheServices,
    principal: Principal,
    form: Mapping[str, str] | None = None,
    refusals: Mapping[str, str] | None = None,
) -> Response:
    now = services.clock()
    rules = await services.rules.everywhere(now, _SHOWN + 1, principal.tables)
    writable = principal.grants.of("write")
    return await page(
        request,
        "caches.html",
        worth=worth_of,
        workers=await looked_up(services.heartbeats.live(now)),
        gone=(await looked_up(services.heartbeats.gone(now))).value or (),
        rules=[rule.info for rule in rules[:_SHOWN]],
        more=len(rules) > _SHOWN,
        may_write=writable,
        warm=lambda table: warm_command(request, table),
        lifetimes=_LIFETIMES,
        refusals=refusals or {},
        asked={"table": "", "rule": "", "filter": "", "max_bytes": "", "days": "", **(form or {})},
    )
