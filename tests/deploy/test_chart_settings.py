"""The coordinator reads every setting of the chart."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.charts import CHART, VALUES, manifests, of_kind, workloads
from windrow_service.issuers.trust import Issuer, SignIn
from windrow_service.settings import (
    AuditSettings,
    HistorySettings,
    LimitSettings,
    MaintenanceSettings,
    MetricsSettings,
    PackSettings,
    Settings,
)

BY_NAME = {path.stem: path for path in VALUES}


@pytest.mark.parametrize("values", VALUES, ids=lambda path: path.stem)
def test_every_variable_of_the_chart_is_a_setting(values: Path) -> None:
    documents = manifests(values)
    variables = {
        *(name for config in of_kind("ConfigMap", documents) for name in config["data"]),
        *(
            variable["name"]
            for load in workloads(documents)
            for variable in load.container.get("env", [])
        ),
    }

    named = {name for name in variables if name.startswith("WINDROW_")}

    assert named - _variables() == set()
    assert "WINDROW_ALLOWED_LOCATIONS" in named


def test_settings_are_read_as_given_in_the_values(monkeypatch: pytest.MonkeyPatch) -> None:
    _set(monkeypatch, manifests(BY_NAME["production"]))

    settings = Settings()

    assert settings.port == 8080
    assert settings.allowed_locations == ("s3://lake/tables", "s3://lake/staging")
    assert settings.planner_threads == 8
    assert settings.max_waiting == 256
    assert settings.limits.max_plan_files == 5_000_000
    assert settings.limits.plan_ttl == timedelta(minutes=30)


def test_issuers_are_trusted_as_given_in_the_values(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "WINDROW_ISSUERS" not in json.dumps(manifests(BY_NAME["minimal"]))
    _set(monkeypatch, manifests(BY_NAME["production"]))

    issuers = Settings().issuers

    assert issuers["corp"].groups == {"platform": ("admin",), "Sales, EU": ("write:sales.*",)}
    assert issuers["cluster"].subjects == {"system:serviceaccount:etl:loader": ("write:sales.*",)}
    schema = json.loads((CHART / "values.schema.json").read_text())
    known = schema["properties"]["issuers"]["additionalProperties"]["properties"]
    assert known.keys() == Issuer.model_fields.keys()


def test_people_sign_in_as_given_in_the_values(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "WINDROW_PUBLIC_URL" not in json.dumps(manifests(BY_NAME["minimal"]))
    _set(monkeypatch, manifests(BY_NAME["production"]))

    settings = Settings()

    assert settings.public_url == "https://windrow.example.com"
    sign_in = settings.issuers["corp"].sign_in
    assert sign_in is not None
    assert sign_in.lasts == timedelta(hours=4)
    assert sign_in.scopes == ("openid", "groups")
    schema = json.loads((CHART / "values.schema.json").read_text())
    issuer = schema["properties"]["issuers"]["additionalProperties"]["properties"]
    # The secret itself is not among the values.
    known = issuer["sign_in"]["properties"].keys() | {"client_secret"}
    assert known == SignIn.model_fields.keys()


def test_metrics_audit_and_history_are_read_as_given_in_the_values(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _set(monkeypatch, manifests(BY_NAME["watched"]))

    settings = Settings()

    assert settings.metrics == MetricsSettings(port=9100, max_tables=50, max_workers=200)
    assert settings.audit == AuditSettings(max_age=timedelta(days=30), max_records=5_000)
    assert settings.history == HistorySettings(max_age=timedelta(days=3), max_plans=9_000)
    assert settings.limits.requests_per_minute == 6_000


def test_without_values_metrics_audit_history_and_maintenance_have_their_defaults(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _set(monkeypatch, manifests(BY_NAME["minimal"]))

    assert (Settings().metrics, Settings().audit) == (MetricsSettings(), AuditSettings())
    assert Settings().history == HistorySettings()
    assert Settings().maintenance == MaintenanceSettings()


def test_packs_lie_where_the_values_say(monkeypatch: pytest.MonkeyPatch) -> None:
    folder, within = "packs.folder=s3://lake/packs", "packs.eraseWithin=PT6H"
    with monkeypatch.context() as patch:
        _set(patch, manifests(BY_NAME["minimal"], folder, within))
        packs = PackSettings(folder="s3://lake/packs", erase_within=timedelta(hours=6))
        assert Settings().packs == packs
    _set(monkeypatch, manifests(BY_NAME["minimal"]))
    assert Settings().packs == PackSettings()


@pytest.mark.parametrize(
    "location",
    [
        "/data/tables",
        "/data/more: tables",
        "s3://lake",
        "gs://lake/tables",
        "abfss://lake@account.dfs.core.windows.net/tables",
    ],
)
def test_every_location_that_the_chart_accepts_is_readable_by_the_coordinator(
    monkeypatch: pytest.MonkeyPatch, location: str
) -> None:
    locations = f"allowedLocations={{{location},hdfs://names:8020/tables,/data}}"
    _set(monkeypatch, manifests(BY_NAME["minimal"], locations))

    assert Settings().allowed_locations == (location, "hdfs://names:8020/tables", "/data")


def test_the_chart_knows_every_limit_and_its_range() -> None:
    known = _schema()["properties"]["limits"]["properties"]
    fields = LimitSettings.model_json_schema()["properties"]

    assert {_snake(name) for name in known} == set(fields)
    for name, stated in known.items():
        assert _range(stated) == _range(fields[_snake(name)]), name


@pytest.mark.parametrize("name", ["plannerThreads", "maxWaiting"])
def test_the_chart_knows_the_range_and_the_default_of_a_setting(name: str) -> None:
    stated = _schema()["properties"][name]
    field = Settings.model_json_schema()["properties"][_snake(name)]

    assert _range(stated) == _range(field)
    assert f"\n{name}: {field['default']}\n" in (CHART / "values.yaml").read_text()


def _set(monkeypatch: pytest.MonkeyPatch, documents: list[dict[str, Any]]) -> None:
    (config,) = [one for one in of_kind("ConfigMap", documents) if "WINDROW_HOST" in one["data"]]
    for name, value in config["data"].items():
        monkeypatch.setenv(name, value)
    # On loopback, no choice about tokens is required.
    monkeypatch.setenv("WINDROW_HOST", "127.0.0.1")


def _variables() -> set[str]:
    return {
        *(f"WINDROW_{name.upper()}" for name in Settings.model_fields),
        *(f"WINDROW_LIMITS__{name.upper()}" for name in LimitSettings.model_fields),
        *(f"WINDROW_METRICS__{name.upper()}" for name in MetricsSettings.model_fields),
        *(f"WINDROW_AUDIT__{name.upper()}" for name in AuditSettings.model_fields),
        *(f"WINDROW_HISTORY__{name.upper()}" for name in HistorySettings.model_fields),
        *(f"WINDROW_MAINTENANCE__{name.upper()}" for name in MaintenanceSettings.model_fields),
        *(f"WINDROW_PACKS__{name.upper()}" for name in PackSettings.model_fields),
    }


def _schema() -> dict[str, Any]:
    return dict(json.loads((CHART / "values.schema.json").read_text()))


def _snake(name: str) -> str:
    return re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", name)


def _range(field: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(field.get(word) for word in ("type", "minimum", "maximum"))
