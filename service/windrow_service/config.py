"""The settings that a coordinator shows its callers."""

from __future__ import annotations

from windrow_core.models import MAX_WRITE_KEYS, Limits, PlanOptions, ServiceConfig
from windrow_core.version import __version__
from windrow_service.planner.packing.strategies import STRATEGIES
from windrow_service.planner.policy import DEFAULT_OPEN_FILE_COST
from windrow_service.settings import Settings


def config_of(settings: Settings) -> ServiceConfig:
    """Return the defaults and limits that callers may know."""
    waits = {"plan_ttl", "head_timeout", "body_timeout"}
    limits = settings.limits.model_dump(exclude=waits)
    return ServiceConfig(
        version=__version__,
        strategies=list(STRATEGIES),
        defaults=PlanOptions(open_file_cost=DEFAULT_OPEN_FILE_COST),
        limits=Limits(
            **limits,
            **{
                f"{name}_seconds": int(getattr(settings.limits, name).total_seconds())
                for name in waits
            },
            max_write_keys=MAX_WRITE_KEYS,
        ),
        allowed_locations=list(settings.allowed_locations),
    )
