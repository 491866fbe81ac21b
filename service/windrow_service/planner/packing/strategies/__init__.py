"""Packing strategies, one module each behind `Strategy`."""

from collections.abc import Mapping

from windrow_service.planner.packing.strategies import balanced, iceberg, openlookeng, spark, tez
from windrow_service.planner.packing.strategies.strategy import Strategy

__all__ = ["STRATEGIES", "Strategy"]

STRATEGIES: Mapping[str, Strategy] = {
    "balanced": balanced.STRATEGY,
    "openlookeng": openlookeng.STRATEGY,
    "spark": spark.STRATEGY,
    "iceberg": iceberg.STRATEGY,
    "tez": tez.STRATEGY,
}
