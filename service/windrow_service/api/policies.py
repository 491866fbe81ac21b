"""Calls about policies of maintenance, and about its budget."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from fastapi import Header, Path, Response, status

from windrow_core.models import (
    POLICY_PATTERN,
    MaintenanceBudget,
    Policy,
    PolicyDefinition,
    PolicyList,
    RetentionPreview,
    TableMaintenance,
)
from windrow_service.api.authentication import PrincipalDep
from windrow_service.api.authorization import (
    ADMIN,
    READ,
    READ_SOME,
    READ_TABLE,
    WRITE_ALL,
    GuardedRouter,
)
from windrow_service.api.idempotency import OnceDep, deletion_answer, stored_answer
from windrow_service.api.parameters import (
    IfNoneMatchHeader,
    TableNamePath,
    etag,
    json_answer,
    version_of,
)
from windrow_service.api.problems import problem_responses
from windrow_service.api.services import MaintenanceDep
from windrow_service.usecases.maintenance.policies import maintenance_of
from windrow_service.usecases.maintenance.work import NEWEST
from windrow_service.usecases.names import Names

# What `GET /tables/{name}/maintenance` shows of a table's receipts.
_SHOWN_FOR, _SHOWN_RECEIPTS = timedelta(days=1), 50
router = GuardedRouter(tags=["maintenance"])

PatternPath = Annotated[
    str,
    Path(
        pattern=POLICY_PATTERN,
        max_length=256,
        description="A table's name, a name followed by `.*` for all below it, or `*`.",
    ),
]
IfMatchHeader = Annotated[
    str | None,
    Header(
        description="Change it only if its ETag is still this; `*`: only if it exists.",
        max_length=256,
    ),
]


@router.put(
    "/policies/{pattern}",
    operation_id="define_policy",
    dependencies=[WRITE_ALL],
    response_model=Policy,
    responses={
        201: {"model": Policy},
        **problem_responses(400, 404, 409, 412, 413, 422, 503, 504),
    },
)
async def define_policy(
    pattern: PatternPath,
    definition: PolicyDefinition,
    services: MaintenanceDep,
    once: OnceDep,
    if_match: IfMatchHeader = None,
    if_none_match: IfNoneMatchHeader = None,
) -> Response:
    """Create or replace a policy, by which tables are maintained. Repeating it changes nothing.

    Of the policies that apply to a table, the most specific one that sets a field decides about
    it: the table's own, then that of the longest name followed by `.*`, then that of `*`. A table
    without a policy is left alone. The caller needs `write` on every name of the pattern.
    """
    result = await services.define(
        pattern, definition, version_of(if_match, if_none_match), once(stored_answer)
    )
    return stored_answer(result).response()


@router.get(
    "/policies",
    operation_id="list_policies",
    dependencies=[READ],
    response_model=PolicyList,
    responses=problem_responses(422, 503),
)
async def list_policies(services: MaintenanceDep, principal: PrincipalDep) -> Response:
    """List the policies (at most 200) by pattern: those that may apply to the caller's tables."""
    policies = [one.info for one in await services.policies.list()]
    return await json_answer(
        PolicyList(policies=[one for one in policies if principal.tables.meet(one.pattern)])
    )


@router.get(
    "/policies/{pattern}",
    operation_id="get_policy",
    dependencies=[READ_SOME],
    responses=problem_responses(404, 422, 503),
)
async def get_policy(pattern: PatternPath, services: MaintenanceDep, response: Response) -> Policy:
    """Return the policy of a pattern, without those of other patterns."""
    entry = await services.policies.get(pattern)
    response.headers.update(etag(entry.version))
    return entry.info


@router.post(
    "/policies/{pattern}/retention",
    operation_id="preview_retention",
    dependencies=[WRITE_ALL],
    response_model=RetentionPreview,
    responses=problem_responses(400, 404, 413, 422, 503, 504),
)
async def preview_retention(
    pattern: PatternPath, definition: PolicyDefinition, services: MaintenanceDep
) -> Response:
    """Show which partitions a policy would drop now if the pattern had it.

    Nothing is changed. Other policies stay as they are: a more specific one may keep more, or less.
    """
    return await json_answer(await services.preview_retention(pattern, definition))


@router.delete(
    "/policies/{pattern}",
    operation_id="delete_policy",
    dependencies=[WRITE_ALL],
    status_code=status.HTTP_204_NO_CONTENT,
    responses=problem_responses(404, 412, 422, 503, 504),
)
async def delete_policy(
    pattern: PatternPath,
    services: MaintenanceDep,
    once: OnceDep,
    if_match: IfMatchHeader = None,
) -> Response:
    """Delete a policy; less specific ones then decide about its tables."""
    await services.policies.delete(pattern, version_of(if_match), once(deletion_answer))
    return deletion_answer(None).response()


@router.get(
    "/tables/{name}/maintenance",
    operation_id="show_maintenance",
    dependencies=[READ_TABLE],
    responses=problem_responses(404, 422, 503),
)
async def show_maintenance(name: TableNamePath, services: MaintenanceDep) -> TableMaintenance:
    """Return how a table is maintained, which policy says so, and what was decided about it."""
    await services.tables.get(name)
    maintenance = maintenance_of(name, [one.info for one in await services.policies.list()])
    state = await services.work.shared()
    since = services.clock() - _SHOWN_FOR
    receipts = await services.work.page(NEWEST, _SHOWN_RECEIPTS, Names(every=True), name)
    return maintenance.model_copy(
        update={
            "decided_at": None if state.round is None else state.round.began_at,
            "receipts": [one for one in receipts if one.last_at >= since],
        }
    )


@router.get(
    "/maintenance/budget",
    operation_id="get_budget",
    dependencies=[READ],
    responses=problem_responses(422, 503),
)
async def get_budget(services: MaintenanceDep, response: Response) -> MaintenanceBudget:
    """Return how much the maintenance of all tables may use in an hour."""
    entry = await services.policies.budget()
    response.headers.update(etag(entry.version))
    return entry.info


@router.put(
    "/maintenance/budget",
    operation_id="set_budget",
    dependencies=[ADMIN],
    response_model=MaintenanceBudget,
    responses={
        201: {"model": MaintenanceBudget},
        **problem_responses(400, 404, 412, 413, 422, 503, 504),
    },
)
async def set_budget(
    budget: MaintenanceBudget,
    services: MaintenanceDep,
    once: OnceDep,
    if_match: IfMatchHeader = None,
    if_none_match: IfNoneMatchHeader = None,
) -> Response:
    """Set how much the maintenance of all tables may use in an hour; 0 core seconds pause it."""
    result = await services.policies.set_budget(
        budget, version_of(if_match, if_none_match), once(stored_answer)
    )
    return stored_answer(result).response()
