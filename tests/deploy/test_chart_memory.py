"""The memory of a replica follows from the settings that bound its work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.charts import CHART, coordinator, manifests, of_kind
from windrow_core.files.limits import MAX_GAINED_BYTES
from windrow_service.api.body_budget import FREE_BYTES
from windrow_service.settings import LimitSettings, Settings

MINIMAL, PRODUCTION = (
    Path(__file__).parent / "values" / f"{name}.yaml" for name in ("minimal", "production")
)
MIB = 2**20
LARGE_FILES = 2_000_000
PLANNED_FILE_BYTES = 512
DECODED_TIMES = 6
LIMITS = [(name, field.default) for name, field in LimitSettings.model_fields.items()]
SET_BY_THE_CHART = yaml.safe_load((CHART / "values.yaml").read_text())["limits"]


def _resources(*settings: str, values: Path = MINIMAL) -> dict[str, Any]:
    return dict(coordinator(manifests(values, *settings)).container["resources"])


def _memory(*settings: str) -> tuple[int, int]:
    """Return request and limit in MiB."""
    given = _resources(*settings)
    request, limit = (given[name]["memory"] for name in ("requests", "limits"))
    assert request.endswith("Mi")
    assert limit.endswith("Mi")
    return int(request[:-2]), int(limit[:-2])


def _settings(monkeypatch: pytest.MonkeyPatch, *settings: str) -> Settings:
    (config,) = of_kind("ConfigMap", manifests(MINIMAL, *settings))
    for name, value in config["data"].items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("WINDROW_HOST", "127.0.0.1")
    return Settings()


@pytest.mark.parametrize(
    "settings",
    [
        (),
        ("limits.maxPlanFiles=null", "limits.maxPublishDecodedBytes=null"),
        ("plannerThreads=16", "manifestCacheBytes=8589934592", "limits.maxPlanFiles=10000000"),
        ("manifestCacheBytes=0", "limits.maxBodyBytes=1024", "limits.maxConnections=10"),
    ],
    ids=["defaults", "of the service", "large", "small"],
)
def test_memory_is_what_the_settings_of_the_coordinator_allow(
    monkeypatch: pytest.MonkeyPatch, settings: tuple[str, ...]
) -> None:
    read = _settings(monkeypatch, *settings)
    limits = read.limits
    idle = 256 * MIB + read.manifest_cache_bytes
    plan = PLANNED_FILE_BYTES * limits.max_plan_files

    request, limit = _memory(*settings)

    assert request == -(-(idle + plan) // MIB)
    assert limit == -(
        -(
            idle
            + read.planner_threads * (plan + limits.max_body_bytes)
            + limits.max_publish_bytes
            + DECODED_TIMES * limits.max_publish_decoded_bytes
            + limits.max_connections * (limits.max_head_bytes + FREE_BYTES)
            + MAX_GAINED_BYTES
        )
        // MIB
    )


@pytest.mark.parametrize(
    ("setting", "more_requested", "more_allowed"),
    [
        (f"manifestCacheBytes={1536 * MIB}", 1024, 1024),
        (f"limits.maxPlanFiles={LARGE_FILES + 2 * MIB}", 1024, 4 * 1024),
        (f"limits.maxPublishDecodedBytes={512 * MIB}", 0, DECODED_TIMES * 256),
        (f"limits.maxPublishBytes={1024 * MIB}", 0, 512),
        (f"limits.maxBodyBytes={32 * MIB}", 0, 4 * 16),
        ("limits.maxConnections=1012", 0, 64),
        # 31.25 MiB more, rounded to whole MiB.
        (f"limits.maxHeadBytes={128 * 1024}", 0, 31),
    ],
)
def test_a_higher_bound_asks_for_more_memory(
    setting: str, more_requested: int, more_allowed: int
) -> None:
    (request, limit), (requested, allowed) = _memory(), _memory(setting)

    assert requested - request == more_requested
    assert allowed - limit in (more_allowed, more_allowed + 1)


@pytest.mark.parametrize("name", [name for name, default in LIMITS if isinstance(default, int)])
def test_a_limit_that_is_not_given_counts_as_the_default_of_the_coordinator(name: str) -> None:
    first, *rest = name.split("_")
    value = "".join([first, *(word.title() for word in rest)])
    without = [f"limits.{value}=null"] if value in SET_BY_THE_CHART else []

    assert _memory(*without) == _memory(f"limits.{value}={dict(LIMITS)[name]}")


@pytest.mark.parametrize("name", ["requests", "limits"])
def test_memory_that_is_given_replaces_both(name: str) -> None:
    # Kubernetes refuses a request above its limit, so the chart must not add the other one.
    given = _resources(f"resources.{name}.memory=5Gi")

    (other,) = {"requests", "limits"} - {name}
    assert given[name]["memory"] == "5Gi"
    assert "memory" not in given[other]
    assert given["requests"]["cpu"] == "500m"


def test_resources_are_taken_as_given() -> None:
    assert _resources(values=PRODUCTION) == {
        "requests": {"cpu": "2", "memory": "2Gi"},
        "limits": {"memory": "3Gi"},
    }
    assert _resources("resources=null").keys() == {"requests", "limits"}
