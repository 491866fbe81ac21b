"""The fit behind the planner's open cost."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest


@pytest.fixture(scope="module")
def benchmark() -> ModuleType:
    # Benchmarks are scripts that import each other: their folder must be on the path.
    folder = Path(__file__).parents[3] / "benchmarks"
    sys.path.insert(0, str(folder))
    try:
        spec = importlib.util.spec_from_file_location(
            "open_file_cost", folder / "open_file_cost.py"
        )
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["open_file_cost"] = module
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(folder))
    return module


def _measured(
    benchmark: ModuleType, file_s: float, byte_s: float, group_s: float, read_s: float
) -> list[Any]:
    return [
        benchmark.Measurement(
            table="t",
            file_count=files,
            size_bytes=size_bytes,
            group_count=groups,
            core_seconds=file_s * files + byte_s * size_bytes + group_s * groups + read_s,
        )
        for files, size_bytes in [(1000, 16e6), (10_000, 160e6), (500, 256e6), (40, 320e6)]
        for groups in (2, 8, 32)
    ]


def test_the_fit_recovers_the_costs_that_seconds_were_computed_from(benchmark: ModuleType) -> None:
    costs = (150e-6, 4e-9, 0.05, 0.3)

    found = benchmark.fit(_measured(benchmark, *costs))

    assert (found.file_s, found.byte_s, found.group_s, found.read_s) == pytest.approx(costs)
    assert found.open_file_cost == pytest.approx(37_500)


def test_a_cost_that_would_be_negative_is_zero(benchmark: ModuleType) -> None:
    found = benchmark.fit(_measured(benchmark, 150e-6, 4e-9, -0.001, 0.3))

    assert found.group_s == 0
    assert min(found.file_s, found.byte_s, found.read_s) >= 0
