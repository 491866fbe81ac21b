"""Calls for machines and operators: health and configuration."""

from __future__ import annotations

from fastapi import APIRouter

from windrow_core.models import Health, ServiceConfig
from windrow_service.api.authorization import READ, GuardedRouter
from windrow_service.api.problems import problem_responses
from windrow_service.api.services import OperationsDep

router = GuardedRouter(tags=["operations"])
# For health probes, which have no token.
health = APIRouter(tags=["operations"])


@health.get("/health/live", operation_id="live", responses=problem_responses())
async def live() -> Health:
    """Answer as long as the process can answer at all; this checks nothing else."""
    return Health(status="ok")


@health.get("/health/ready", operation_id="ready", responses=problem_responses(503))
async def ready(services: OperationsDep) -> Health:
    """Answer if the coordinator can do its work, which requires its database.

    `degraded` counts as ready. Without the cache map, plans are still correct, only less local. If
    the disk of the embedded database is full, data can be read but not changed. A machine whose
    clock differs from the database's by more than 5 s is `skewed`; above a minute it is not ready
    from 5 s after the check that first shows it. The answer comes within 3 s, even if the database
    is silent.
    """
    return await services.readiness()


@router.get("/config", operation_id="config", dependencies=[READ], responses=problem_responses())
async def config(services: OperationsDep) -> ServiceConfig:
    """Return the defaults and limits of this coordinator."""
    return services.config
