"""Settings are read from the environment, and bad ones are refused with a remedy."""

from __future__ import annotations

from datetime import timedelta

import pytest
from pydantic import ValidationError

from windrow_service.settings import Settings, is_loopback


def test_the_defaults_are_safe() -> None:
    settings = Settings()

    assert settings.host == "127.0.0.1"
    assert settings.allowed_locations == ()


def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINDROW_PORT", "9000")
    monkeypatch.setenv("WINDROW_ALLOWED_LOCATIONS", "/data:/more data")
    monkeypatch.setenv("WINDROW_LIMITS__MAX_PAGE_SPLITS", "5")
    monkeypatch.setenv("WINDROW_LIMITS__PLAN_TTL", "PT5M")

    settings = Settings()

    assert settings.port == 9000
    assert settings.allowed_locations == ("/data", "/more data")
    assert settings.limits.max_page_splits == 5
    assert settings.limits.plan_ttl == timedelta(minutes=5)


def test_a_redis_url_of_another_kind_is_refused_without_its_password(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("WINDROW_REDIS_URL", "http://:open-sesame@cache:6379/0")

    with pytest.raises(ValidationError, match="redis://, rediss:// or unix://") as caught:
        Settings()

    assert "open-sesame" not in str(caught.value)


def test_a_refusal_shows_no_password_of_another_setting() -> None:
    with pytest.raises(ValidationError) as caught:
        Settings.model_validate(
            {
                "require_tokens": True,
                "serve_without_authentication": True,
                "redis_url": "redis://:open-sesame@cache:6379/0",
            }
        )

    assert "open-sesame" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "locations"),
    [
        ("/data:/more", ("/data", "/more")),
        (
            "s3://b/t:/data:hdfs://name:8020/t:gs://b",
            ("s3://b/t", "/data", "hdfs://name:8020/t", "gs://b"),
        ),
        ("abfss://a@b.dfs.net/t:/data", ("abfss://a@b.dfs.net/t", "/data")),
        ("/data:hdfs://name:8020", ("/data", "hdfs://name:8020")),
        ("/a,b:c", ("/a,b", "c")),
        ('["/odd:name", "s3://b/t"]', ("/odd:name", "s3://b/t")),
        ("", ()),
    ],
)
def test_allowed_locations_are_joined_by_colons_or_a_json_list(
    monkeypatch: pytest.MonkeyPatch, text: str, locations: tuple[str, ...]
) -> None:
    monkeypatch.setenv("WINDROW_ALLOWED_LOCATIONS", text)

    assert Settings().allowed_locations == locations


def test_a_broken_list_of_allowed_locations_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINDROW_ALLOWED_LOCATIONS", '["/data"')

    with pytest.raises(ValidationError, match=r"allowed_locations|JSON"):
        Settings()


def test_variables_of_other_tools_are_not_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINDROW_URL", "http://127.0.0.1:8080")

    assert Settings().port == 8080


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "coordinator", ""])
def test_an_address_that_others_can_reach_requires_tokens_unless_explicitly_disabled(
    host: str,
) -> None:
    assert Settings(host=host).tokens_required
    assert not Settings(host=host, serve_without_authentication=True).tokens_required


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_a_loopback_address_requires_tokens_only_on_request(host: str) -> None:
    assert is_loopback(host)
    assert not Settings(host=host).tokens_required
    assert Settings(host=host, require_tokens=True).tokens_required


def test_requiring_and_disabling_tokens_together_is_refused() -> None:
    with pytest.raises(ValidationError, match="contradict each other"):
        Settings(require_tokens=True, serve_without_authentication=True)


@pytest.mark.parametrize(
    ("name", "value", "named"),
    [
        ("WINDROW_PORT", "70000", "port"),
        ("WINDROW_PLANNER_THREADS", "0", "planner_threads"),
        ("WINDROW_LIMITS__MAX_BODY_BYTES", "1", "max_body_bytes"),
        ("WINDROW_LIMITS__MAX_FILTER_DEPTH", "100000", "max_filter_depth"),
        ("WINDROW_LIMITS__DEFAULT_PAGE_GROUPS", "20000", "default_page_groups"),
        ("WINDROW_LIMITS__PLAN_TTL", "PT0S", "plan_ttl"),
        ("WINDROW_LIMITS__PLAN_TTL", "P9999999D", "plan_ttl"),
        ("WINDROW_LIMITS__NO_SUCH", "1", "no_such"),
    ],
)
def test_a_setting_out_of_bounds_is_refused_and_named(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, named: str
) -> None:
    monkeypatch.setenv(name, value)

    with pytest.raises(ValidationError, match=named):
        Settings()
