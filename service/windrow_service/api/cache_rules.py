"""Calls about caching: rules that mark files of a table as cacheable, and their effect."""

from __future__ import annotations

from typing import Annotated

from fastapi import Header, Path, Response, status

from windrow_core.models import (
    CACHE_RULE_PATTERN,
    CacheRule,
    CacheRuleDefinition,
    CacheRules,
    TableCache,
)
from windrow_service.api.authorization import READ_TABLE, WRITE_TABLE, GuardedRouter
from windrow_service.api.idempotency import OnceDep, deletion_answer, stored_answer
from windrow_service.api.parameters import (
    IfNoneMatchHeader,
    TableNamePath,
    etag,
    json_answer,
    version_of,
)
from windrow_service.api.problems import problem_responses
from windrow_service.api.services import CachesDep

router = GuardedRouter(tags=["caching"])

RuleNamePath = Annotated[
    str, Path(pattern=CACHE_RULE_PATTERN, description="For example `last-week`.")
]
IfMatchHeader = Annotated[
    str | None,
    Header(
        description="Change it only if the rule's ETag is still this; `*`: only if it exists.",
        max_length=256,
    ),
]


@router.put(
    "/tables/{name}/cache-rules/{rule}",
    operation_id="define_cache_rule",
    dependencies=[WRITE_TABLE],
    response_model=CacheRule,
    responses={
        201: {"model": CacheRule},
        **problem_responses(400, 404, 409, 412, 413, 422, 503, 504),
    },
)
async def define_cache_rule(
    name: TableNamePath,
    rule: RuleNamePath,
    definition: CacheRuleDefinition,
    services: CachesDep,
    once: OnceDep,
    if_match: IfMatchHeader = None,
    if_none_match: IfNoneMatchHeader = None,
) -> Response:
    """Create or change a rule that marks files as cacheable. Repeating it changes nothing.

    Plans then send the tasks that read these files to workers that hold them, or will hold them.
    """
    result = await services.define_rule(
        name, rule, definition, version_of(if_match, if_none_match), once(stored_answer)
    )
    return stored_answer(result).response()


@router.get(
    "/tables/{name}/cache-rules",
    operation_id="list_cache_rules",
    dependencies=[READ_TABLE],
    response_model=CacheRules,
    responses=problem_responses(404, 422, 503),
)
async def list_cache_rules(name: TableNamePath, services: CachesDep) -> Response:
    """List all cache rules of a table (at most 100), by name."""
    rules = [rule.info for rule in await services.rules.list(name)]
    return await json_answer(CacheRules(rules=rules))


@router.get(
    "/tables/{name}/cache-rules/{rule}",
    operation_id="get_cache_rule",
    dependencies=[READ_TABLE],
    responses=problem_responses(404, 422, 503),
)
async def get_cache_rule(
    name: TableNamePath, rule: RuleNamePath, services: CachesDep, response: Response
) -> CacheRule:
    """Return a cache rule; an expired rule can still be read for a day."""
    entry = await services.rules.get(name, rule)
    response.headers.update(etag(entry.version))
    return entry.info


@router.delete(
    "/tables/{name}/cache-rules/{rule}",
    operation_id="delete_cache_rule",
    dependencies=[WRITE_TABLE],
    status_code=status.HTTP_204_NO_CONTENT,
    responses=problem_responses(404, 412, 422, 503, 504),
)
async def delete_cache_rule(
    name: TableNamePath,
    rule: RuleNamePath,
    services: CachesDep,
    once: OnceDep,
    if_match: IfMatchHeader = None,
) -> Response:
    """Delete a cache rule. Workers keep the files that it marked until they need the room."""
    await services.rules.delete(name, rule, version_of(if_match), once(deletion_answer))
    return deletion_answer(None).response()


@router.get(
    "/tables/{name}/cache",
    operation_id="show_cache",
    dependencies=[READ_TABLE],
    response_model=TableCache,
    responses=problem_responses(404, 409, 422, 503),
)
async def show_cache(name: TableNamePath, services: CachesDep) -> Response:
    """Return how much of a table's current snapshot is cacheable, and where it is cached.

    Expired rules are left out.
    """
    return await json_answer(await services.show(name))
