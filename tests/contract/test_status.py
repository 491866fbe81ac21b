"""The status of a coordinator, as a call and as a command."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.support.servers.coordinators import running
from tests.support.tables import hive
from windrow.client import Client
from windrow_calls.errors import WindrowError
from windrow_cli.app import run
from windrow_core.version import __version__
from windrow_service.settings import Settings


def test_the_status_tells_what_is_there_and_what_went_wrong(
    client: Client, name: str, location: Path
) -> None:
    hive.write_events(location)
    client.register_table(name, str(location))
    before = client.status()
    shutil.rmtree(location)
    with pytest.raises(WindrowError, match=str(location)):
        client.refresh(name)

    now = client.status()

    assert (now.version, now.health.status) == (__version__, "ok")
    assert [one.version for one in now.replicas or ()] == [__version__]
    assert now.tables >= 1
    assert name not in [one.name for one in before.troubles]
    (trouble,) = [one for one in now.troubles if one.name == name]
    assert trouble.kind == "refresh"
    assert str(location) in trouble.reason
    assert f">{name}</td>" in now._repr_html_()


def test_the_command_shows_the_status_and_fails_without_an_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = hive.write_events(tmp_path / "events")
    settings = Settings(state_dir=tmp_path / "state", allowed_locations=(str(tmp_path),))
    with running(settings) as url:
        assert run(["table", "register", "s.e", str(folder), "--url", url]) == 0
        assert run(["table", "refresh", "s.e", "--url", url]) == 0
        capsys.readouterr()
        assert run(["status", "--url", url]) == 0
        text = capsys.readouterr().out
        assert run(["status", "--url", url, "--json"]) == 0
        status = json.loads(capsys.readouterr().out)["status"]

    assert f"Coordinator {__version__}" in text
    assert "s.e" in text
    assert (status["tables"], status["work"]["failed"], status["troubles"]) == (1, 0, [])
    assert run(["status", "--url", url]) == 1
    assert "no answer" in capsys.readouterr().err
