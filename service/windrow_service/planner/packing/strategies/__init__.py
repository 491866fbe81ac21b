"""Packing strategies, one module each behind `Strategy`."""

from collections.abc import Mapping
from importlib import import_module
from typing import get_args

from windrow_core.planning import StrategyName
from windrow_service.planner.packing.strategies.strategy import Strategy

__all__ = ["STRATEGIES", "Strategy"]

STRATEGIES: Mapping[str, Strategy] = {
    name: import_module(f"{__name__}.{name}").STRATEGY for name in get_args(StrategyName)
}
