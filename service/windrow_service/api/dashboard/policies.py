"""Pages that add, change and remove policies of maintenance."""

from __future__ import annotations

import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Annotated

from fastapi import Path, Request
from fastapi.responses import Response

from windrow_core.models import POLICY_PATTERN
from windrow_service.api.authentication import PrincipalDep
from windrow_service.api.authorization import READ_SOME, WRITE, WRITE_ALL, GuardedRouter
from windrow_service.api.dashboard.policy_fields import (
    FIELDS,
    HINTS,
    definition_from,
    texts_of,
)
from windrow_service.api.dashboard.refused_fields import RefusedFieldError
from windrow_service.api.dashboard.signing_in import changes_of
from windrow_service.api.html.rendering import ROOT, page, redirect
from windrow_service.api.services import MaintenanceDep, MaintenanceServices
from windrow_service.filters.errors import InvalidFilterError
from windrow_service.usecases.access.authenticate import Principal
from windrow_service.usecases.maintenance.errors import InvalidPolicyError
from windrow_service.usecases.maintenance.ports import StoredPolicy
from windrow_service.usecases.maintenance.table_policies import definition_of

router = GuardedRouter(include_in_schema=False)
_PAGE = f"{ROOT}/policies"
_LIST = f"{ROOT}/maintenance"
_LONGEST = 256
_PATTERN_ERROR = (
    "it must be a table's name, a name followed by .* for all below it, or * for all tables"
)
PatternPath = Annotated[str, Path(pattern=POLICY_PATTERN, max_length=_LONGEST)]


@router.get(_PAGE, dependencies=[WRITE])
async def new_policy(request: Request, principal: PrincipalDep) -> Response:
    """Show the form of a new policy."""
    return await _form(request, principal, None, {"pattern": "", "enabled": "yes"})


@router.get(f"{_PAGE}/{{pattern}}", dependencies=[READ_SOME])
async def show_policy(
    pattern: PatternPath, request: Request, services: MaintenanceDep, principal: PrincipalDep
) -> Response:
    """Show a policy, in the form that changes it; an empty form if there is none yet."""
    policy = await _find(services, pattern)
    definition = definition_of(policy)
    enabled = "yes" if definition.enabled else "no"
    form = {"pattern": pattern, "enabled": enabled, **texts_of(definition)}
    return await _form(request, principal, policy, form)


@router.post(
    _PAGE,
    # Its name in the audit log.
    operation_id="define_policy",
    dependencies=[WRITE],
)
async def define_policy(
    request: Request, services: MaintenanceDep, principal: PrincipalDep
) -> Response:
    """Make or change a policy."""
    form = await changes_of(request)
    pattern = form.get("pattern", "").strip()
    policy = None
    try:
        if len(pattern) > _LONGEST or not re.fullmatch(POLICY_PATTERN, pattern):
            raise RefusedFieldError("pattern", _PATTERN_ERROR)
        principal.require_on("write", pattern)
        policy = await _find(services, pattern)
        # A form that was opened before somebody else's change does not undo it.
        version = form.get("version") or None
        if policy is not None and version is None:
            raise RefusedFieldError("pattern", "there is a policy for it already: change that one")
        definition = definition_from(form, definition_of(policy))
        await services.define(pattern, definition, version)
    except (RefusedFieldError, InvalidFilterError, InvalidPolicyError) as error:
        refusal = {_field_of(error): str(error)}
        original = policy if form.get("version") else None
        answer = await _form(request, principal, original, form, refusal)
        answer.status_code = HTTPStatus.UNPROCESSABLE_ENTITY
        return answer
    return redirect(request, f"{_LIST}#policies")


@router.post(f"{_PAGE}/{{pattern}}/switch", operation_id="define_policy", dependencies=[WRITE_ALL])
async def switch_policy(
    pattern: PatternPath, request: Request, services: MaintenanceDep
) -> Response:
    """Pause a policy, or resume it."""
    form = await changes_of(request)
    policy = await services.policies.get(pattern)
    definition = definition_of(policy).model_copy(update={"enabled": form.get("on") == "yes"})
    await services.define(pattern, definition, policy.version)
    return redirect(request, f"{_LIST}#policies")


@router.post(f"{_PAGE}/{{pattern}}/remove", operation_id="delete_policy", dependencies=[WRITE_ALL])
async def remove_policy(
    pattern: PatternPath, request: Request, services: MaintenanceDep
) -> Response:
    """Remove a policy, after a confirmation."""
    form = await changes_of(request)
    if form.get("sure") != "yes":
        return await page(request, "remove_policy.html", pattern=pattern)
    await services.policies.delete(pattern, None)
    return redirect(request, f"{_LIST}#policies")


def _field_of(error: Exception) -> str:
    """Return the field that an error is about; empty for all of the form."""
    if isinstance(error, RefusedFieldError):
        return error.name
    return "filter" if isinstance(error, InvalidFilterError) else ""


async def _find(services: MaintenanceServices, pattern: str) -> StoredPolicy | None:
    return next(
        (one for one in await services.policies.list() if one.info.pattern == pattern), None
    )


async def _form(
    request: Request,
    principal: Principal,
    policy: StoredPolicy | None,
    form: Mapping[str, str],
    refusals: Mapping[str, str] | None = None,
) -> Response:
    pattern, writable = form.get("pattern", ""), principal.grants.of("write")
    return await page(
        request,
        "policy.html",
        policy=policy,
        fields=FIELDS,
        hints=HINTS,
        asked={"pattern": "", "enabled": "yes", **{one.name: "" for one in FIELDS}, **form},
        refusals=refusals or {},
        may_write=pattern in writable if pattern else bool(writable),
    )
