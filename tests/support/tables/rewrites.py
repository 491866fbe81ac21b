"""Possible rewrites, policies and budgets of maintenance, with defaults for all columns."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from windrow_service.planner.maintenance.budget import Budget
from windrow_service.planner.maintenance.columns import Rewrites, TablePolicies

MIB = 2**20
TABLES = 4


def rewrites(**columns: Any) -> Rewrites:
    """Return rewrites that are worth it, of ten files and a megabyte each.

    Args:
        columns: Columns that differ: a list, or one value for all rows.
    """
    defaults: dict[str, Any] = {
        "table": 0,
        "partition": 0,
        "small_bytes": 64 * MIB,
        "files": 10,
        "becomes": 1,
        "size_bytes": MIB,
        "cost_seconds": 1.0,
        "gain_seconds": 1.0,
        "reads_per_day": 10.0,
        "lasting_days": 30.0,
        "next_write_days": np.inf,
        "gathering_days": 1.0,
        "quiet_seconds": 86_400.0,
        "written_bytes": 100 * MIB,
        "rewritten_bytes": 0,
        "failures": 0,
        "failure_seconds": 0.0,
        "idle_runs": 0,
        "run_seconds": 0.0,
        "is_excluded": False,
        "is_running": False,
    }
    return Rewrites(**_columns(Rewrites, defaults | columns, 1))


def policies(**columns: Any) -> TablePolicies:
    """Return the policies of four tables, which leave nothing alone unless a column says so."""
    defaults: dict[str, Any] = {
        "target_bytes": 128 * MIB,
        "is_off": False,
        "is_open": True,
        "min_quiet_seconds": 0.0,
        "min_ratio": 1.0,
        "max_share": 1.0,
        "share_debt": 0.0,
        "waiting_days": 0.0,
        "piece_seconds": 0.0,
    }
    return TablePolicies(**_columns(TablePolicies, defaults | columns, TABLES))


def budget(**amounts: float) -> Budget:
    """Return a budget of 100 core seconds and 1 GiB each hour, of which one hour is left."""
    defaults = {
        "seconds": 100.0,
        "size_bytes": 1024.0 * MIB,
        "hour_seconds": 100.0,
        "hour_bytes": 1024.0 * MIB,
    }
    return Budget(**(defaults | amounts))


def _columns(of: type, values: dict[str, Any], count: int) -> dict[str, Any]:
    lengths = [len(value) for value in values.values() if isinstance(value, list)]
    count = max(lengths, default=count) if 0 not in lengths else 0
    types = {"Ints": np.int64, "Floats": np.float64, "Bools": np.bool_}
    return {
        field.name: np.resize(np.asarray(values[field.name], types[str(field.type)]), count)
        for field in fields(of)
    }
