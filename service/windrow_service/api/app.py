"""The HTTP application."""

from __future__ import annotations

import warnings
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypedDict

from fastapi import APIRouter, FastAPI
from fastapi_offline import FastAPIOffline
from pydantic.warnings import UnsupportedFieldAttributeWarning
from starlette.routing import BaseRoute

from windrow_core.models import InventoryChange, PartitionList, WritePlanRequest
from windrow_core.models.erasures import ErasureRequest
from windrow_core.models.packs import NewPack
from windrow_core.version import __version__
from windrow_service.api import (
    audit,
    cache_rules,
    caller_tokens,
    dashboard,
    docs_page,
    erasures,
    guide,
    iceberg,
    iceberg_scans,
    idempotency,
    maintenance,
    operations,
    packs,
    partitions,
    plan_history,
    plans,
    policies,
    problems,
    refreshes,
    snapshots,
    status,
    suggestions,
    tables,
    upkeep,
    workers,
    write_plans,
    writes,
)
from windrow_service.api.authentication import Authentication
from windrow_service.api.authorization import GuardedRouter, require_open
from windrow_service.api.bodies import BodyLimits, BoundedBodies, add_body_schema
from windrow_service.api.examples import add_examples
from windrow_service.api.rates import RatesLimited
from windrow_service.api.request_log import RequestLog
from windrow_service.api.services import Services

_DESCRIPTION = """\
Windrow keeps the file inventory of tables made of many small files and answers
`POST /plans` with split groups: small splits packed together by bucket and locality,
so that a reader runs one task per group. Errors are RFC 9457 problems.
"""

# FastAPI gives each body an alias, and ignores pydantic's warning about it only while it makes a
# route; models that are built later would print it into the program of whoever embeds a coordinator.
warnings.filterwarnings(
    "ignore", "The 'alias' attribute with value", category=UnsupportedFieldAttributeWarning
)


class _State(TypedDict):
    services: Services


def _routes() -> list[BaseRoute]:
    routers: tuple[GuardedRouter, ...] = (
        tables.router,
        partitions.router,
        refreshes.router,
        snapshots.router,
        writes.router,
        cache_rules.router,
        packs.router,
        erasures.router,
        upkeep.router,
        policies.router,
        maintenance.router,
        plans.router,
        plan_history.router,
        write_plans.router,
        workers.router,
        caller_tokens.router,
        operations.router,
        status.router,
        audit.router,
    )
    router = APIRouter()
    refusals = problems.problem_responses(401, 403, 429, 503)
    for each in routers:
        router.include_router(each, responses=refusals)
    router.include_router(iceberg.tokens)
    router.include_router(iceberg_scans.router)
    router.include_router(iceberg.router)
    router.include_router(operations.health)
    router.include_router(dashboard.router)
    return router.routes


# Shared by all applications of a process, such as embedded ones: FastAPI prepares routes when the
# first request looks for one, and so does that only once.
_ROUTES = _routes()


def create_app(
    open_services: Callable[[], AbstractAsyncContextManager[Services]], *, body_limits: BodyLimits
) -> FastAPI:
    """Return the application; `open_services` is entered when it starts."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[_State]:
        async with open_services() as services:
            yield {"services": services}

    app: FastAPI = FastAPIOffline(
        title="Windrow",
        description=_DESCRIPTION,
        version=__version__,
        docs_url=None,
        redoc_url=None,
        # One schema per model: requests and responses use the same fields.
        separate_input_output_schemas=False,
        lifespan=lifespan,
        routes=_ROUTES,
    )
    app.add_middleware(BoundedBodies, limits=body_limits)
    app.add_middleware(RatesLimited)
    app.add_middleware(Authentication)
    app.add_middleware(RequestLog)
    problems.install(app)
    idempotency.install(app)
    suggestions.install(app)
    app.openapi = lambda: _document(app)  # type: ignore[method-assign]
    docs_page.add_pages(app)
    app.state.menu = dashboard.MENU
    guide.add_guide(app)
    require_open(route for route in app.routes if route not in _ROUTES)
    return app


def _document(app: FastAPI) -> dict[str, Any]:
    if app.openapi_schema is not None:
        return app.openapi_schema
    document = FastAPI.openapi(app)
    problems.add_problem_schema(document)
    for model in (ErasureRequest, InventoryChange, NewPack, PartitionList, WritePlanRequest):
        add_body_schema(document, model)
    _make_integer_bounds_exact(document)
    add_examples(document)
    return document


def _make_integer_bounds_exact(part: Any) -> None:
    """Make the bounds of integers exact: FastAPI's are floats, which cannot represent 2^63 - 1."""
    if isinstance(part, list):
        for inner in part:
            _make_integer_bounds_exact(inner)
    elif isinstance(part, dict):
        if part.get("type") == "integer":
            for bound in {"minimum", "maximum"} & part.keys():
                part[bound] = min(int(part[bound]), 2**63 - 1)
        for inner in part.values():
            _make_integer_bounds_exact(inner)
