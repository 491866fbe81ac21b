"""Authorization: the rule of each call, declared with its route."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response, Security, params
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer, SecurityScopes
from starlette.routing import BaseRoute

from windrow_service.api.authentication import PrincipalDep, is_open
from windrow_service.api.bodies import BoundedRoute
from windrow_service.api.parameters import PlanIdPath
from windrow_service.api.services import PlansDep
from windrow_service.usecases.access.authenticate import Principal
from windrow_service.usecases.plans.history import KnownPlan
from windrow_service.usecases.plans.ports import PlanRecord

_bearer = HTTPBearer(
    scheme_name="token",
    description="A token made by `windrow token create` or `POST /tokens`, or an access token of an issuer that "
    "the coordinator trusts. Not required by a coordinator that only "
    "its own machine can reach, nor by one configured to serve without authentication. The scope "
    "`write` includes `read`, and `admin` includes all others. A token has a scope on all tables, "
    "or on some, such as `read:sales.*`. A table that it may not read does not exist for it: 404. "
    "A plan belongs to the caller that made it, and to `admin` on its table.",
    auto_error=False,
)
_BearerDep = Annotated[HTTPAuthorizationCredentials | None, Security(_bearer)]


def _rule(check: Callable[[Principal, str, Request], None]) -> Callable[..., Awaitable[None]]:
    """Return a rule that checks each scope of a call."""

    async def rule(
        scopes: SecurityScopes, principal: PrincipalDep, request: Request, _: _BearerDep
    ) -> None:
        for scope in scopes.scopes:
            check(principal, scope, request)

    return rule


_has_scope = _rule(lambda caller, scope, _: caller.require(scope))
_has_scope_everywhere = _rule(lambda caller, scope, _: caller.require_everywhere(scope))
_has_scope_on_table = _rule(
    lambda caller, scope, request: caller.require_table(scope, request.path_params["name"])
)
_has_scope_on_name = _rule(
    lambda caller, scope, request: caller.require_on(scope, request.path_params["name"])
)
_has_scope_on_all = _rule(
    lambda caller, scope, request: caller.require_on(scope, request.path_params["pattern"])
)
_has_scope_on_some = _rule(
    lambda caller, scope, request: caller.require_on_some(scope, request.path_params["pattern"])
)
_has_scope_on_worker = _rule(
    lambda caller, scope, request: caller.require_on(scope, request.path_params["worker_id"])
)


async def _own_plan(plan_id: PlanIdPath, principal: PrincipalDep, services: PlansDep) -> PlanRecord:
    return await services.read.get(plan_id, principal)


async def _known_plan(
    plan_id: PlanIdPath, principal: PrincipalDep, services: PlansDep
) -> KnownPlan:
    return await services.look_back.known(plan_id, principal)


# For calls about no table, or about all tables that the caller may read. Also for calls whose body
# names the table: their handler checks it.
READ = Security(_has_scope, scopes=["read"])
# The same, for calls that change tables: their handler passes on which ones the caller may change.
WRITE = Security(_has_scope, scopes=["write"])
# For calls about the caller itself.
SIGNED_IN = Security(_has_scope, scopes=[])
# For calls about all tables.
ADMIN = Security(_has_scope_everywhere, scopes=["admin"])
# For calls about the table that the path names.
READ_TABLE = Security(_has_scope_on_table, scopes=["read"])
WRITE_TABLE = Security(_has_scope_on_table, scopes=["write"])
ADMIN_TABLE = Security(_has_scope_on_table, scopes=["admin"])
# For calls about the table that the path names, which need not exist.
REGISTER_TABLE = Security(_has_scope_on_name, scopes=["write"])
# For calls about all tables of the pattern that the path names, or about some of them.
WRITE_ALL = Security(_has_scope_on_all, scopes=["write"])
READ_SOME = Security(_has_scope_on_some, scopes=["read"])
# For calls about the worker that the path names.
THIS_WORKER = Security(_has_scope_on_worker, scopes=["worker"])
# For calls about a plan that the caller may see; together with READ.
OWN_PLAN = Depends(_own_plan)
OwnPlanDep = Annotated[PlanRecord, OWN_PLAN]
# The same, for a plan that may have expired.
KNOWN_PLAN = Depends(_known_plan)
KnownPlanDep = Annotated[KnownPlan, KNOWN_PLAN]

# The rules that a call may have, by the subject that its path names.
_OF_PATH: dict[str | None, set[Callable[..., Any]]] = {
    "name": {_has_scope_on_table, _has_scope_on_name},
    "plan_id": {_own_plan, _known_plan},
    "pattern": {_has_scope_on_all, _has_scope_on_some},
    "worker_id": {_has_scope_on_worker},
    # A token belongs to no table.
    "token_id": {_has_scope_everywhere},
    None: {_has_scope, _has_scope_everywhere},
}
_SUBJECT = re.compile(r"^(?:/dashboard)?/\w+/\{(\w+)\}")


class RuleMissingError(Exception):
    """A call is declared without a rule about who may make it."""

    def __init__(self, path: str) -> None:
        super().__init__(
            f"{path} has no rule for the subject of its path: add one of windrow_service.api.authorization "
            "to the dependencies of its route"
        )


class GuardedRoute(BoundedRoute):
    """A route that applies the rules about its path before the body is read.

    FastAPI applies them too, but only once it has parsed the body.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler of one request."""
        handle = super().get_route_handler()
        rules = [
            (rule.dependency, SecurityScopes(list(rule.scopes or ())))
            for rule in self.dependencies
            if isinstance(rule, params.Security) and rule.dependency is not None
        ]

        async def handler(request: Request) -> Response:
            for rule, scopes in rules:
                await rule(scopes, request.state.principal, request, None)
            return await handle(request)

        return handler


class GuardedRouter(APIRouter):
    """A router that takes no call without a rule, and no JSON without limits."""

    def __init__(self, *, route_class: type[GuardedRoute] = GuardedRoute, **options: Any) -> None:
        super().__init__(route_class=route_class, **options)

    def add_api_route(
        self,
        path: str,
        endpoint: Callable[..., Any],
        *,
        dependencies: Sequence[params.Depends] | None = None,
        **options: Any,
    ) -> None:
        """Add a call."""
        match = _SUBJECT.match(path)
        rules = _OF_PATH.get(match[1] if match else None, set())
        if rules.isdisjoint(one.dependency for one in dependencies or ()):
            raise RuleMissingError(path)
        super().add_api_route(path, endpoint, dependencies=dependencies, **options)


def require_open(routes: Iterable[BaseRoute]) -> None:
    """Make sure that routes outside guarded routers are open to everybody."""
    for route in routes:
        path = getattr(route, "path", "a route without a path")
        # The path of a mount lacks the slash of the paths below it.
        if not is_open(path) and not is_open(f"{path}/"):
            raise RuleMissingError(path)
