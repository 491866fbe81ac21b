"""Settle the options of a plan, from the request, its session, the table and the strategy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from windrow_core.models import (
    READING_OPTIONS,
    SIZES_BELOW_MAXIMUM,
    OptionSource,
    PlanDefaults,
    PlanOptions,
    PlanRequest,
    TableDefinition,
)
from windrow_service.planner.packing.strategies import STRATEGIES
from windrow_service.planner.policy import (
    DEFAULT_MAX_INITIAL_SPLIT_SIZE,
    CachedSplits,
    Policy,
)
from windrow_service.usecases.plans.errors import InvalidOptionsError

# Later sources override earlier ones.
_ORDER: tuple[OptionSource, ...] = ("default", "table", "session", "request")


@dataclass(frozen=True, slots=True, kw_only=True)
class SettledOptions:
    """The options of a plan.

    Attributes:
        explicit: Options as set by request, session and table; None where the strategy decides.
        sources: The source of each option's value.
    """

    explicit: PlanOptions
    sources: Mapping[str, OptionSource]

    @property
    def suits_caches(self) -> bool:
        """Whether the sizes of cacheable splits decide how these are grouped.

        Nobody has said how then, and strategies of other systems do as those systems.
        """
        return self.sources["cached_splits"] == "default" and self.explicit.strategy == "balanced"

    def dividing(self, cached_splits: CachedSplits) -> SettledOptions:
        """Return the options with the way in which cacheable splits were grouped."""
        update = {"cached_splits": cached_splits}
        return replace(self, explicit=self.explicit.model_copy(update=update))

    @property
    def options(self) -> PlanOptions:
        """The options, completed with the strategy's defaults."""
        return with_defaults(self.explicit)


def settle(request: PlanRequest, definition: TableDefinition) -> SettledOptions:
    """Settle the options of a plan: the request overrides its session, which overrides the table."""
    values = PlanOptions().model_dump()
    sources: dict[str, OptionSource] = dict.fromkeys(values, "default")
    layers: tuple[tuple[OptionSource, PlanDefaults], ...] = (
        ("table", definition.plan_options),
        ("session", request.session_options),
        ("request", request.options),
    )
    for source, layer in layers:
        choices = layer.model_dump(exclude_unset=True, exclude_none=True)
        values |= choices
        sources |= dict.fromkeys(choices, source)
    _cap_sizes(values, sources)
    try:
        return SettledOptions(explicit=PlanOptions.completed(values), sources=sources)
    except ValueError as error:
        raise InvalidOptionsError(str(error), sources["max_split_size"]) from None


def _cap_sizes(values: dict[str, Any], sources: Mapping[str, OptionSource]) -> None:
    """Cap sizes at `max_split_size` where its source overrides theirs."""
    most, rank = values["max_split_size"], _ORDER.index(sources["max_split_size"])
    for name in SIZES_BELOW_MAXIMUM:
        if values[name] is not None and _ORDER.index(sources[name]) < rank:
            values[name] = min(values[name], most)


def with_defaults(options: PlanOptions) -> PlanOptions:
    """Return options completed with the strategy's defaults."""
    strategy = STRATEGIES[options.strategy]
    defaults = {
        "min_split_size": min(strategy.min_split_size, options.max_split_size),
        "max_initial_split_size": min(DEFAULT_MAX_INITIAL_SPLIT_SIZE, options.max_split_size),
        "max_small_splits_grouped": strategy.max_small_splits_grouped,
        "open_file_cost": strategy.open_file_cost,
    }
    missing = {name: value for name, value in defaults.items() if getattr(options, name) is None}
    return options.model_copy(update=missing)


def policy_of(options: PlanOptions, max_files: int) -> Policy:
    """Return the planner's policy for options that `with_defaults` has completed."""
    return Policy(**options.model_dump(exclude=set(READING_OPTIONS)), max_files=max_files)
