"""The units for systemd: they are valid, and their commands and examples work."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from configparser import ConfigParser
from pathlib import Path

import pytest

from tests.deploy import started
from tests.deploy.charts import ROOT
from tests.deploy.compositions import FOLDER, variables
from tests.deploy.images import entrypoint, environment
from tests.support.servers.coordinators import free_port, wait_until
from windrow_service.settings import Settings

UNITS = FOLDER / "systemd"
NAMES = ("windrow", "windrow-maintain")
SECTION = "On one machine with systemd"
# 0 is best, and 10 worst; services without any protection have 9.6.
_MOST_EXPOSED = 2.0


def unit(name: str) -> ConfigParser:
    parser = ConfigParser(interpolation=None, strict=True, delimiters=("=",))
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(UNITS / f"{name}.service")
    return parser


def commands(name: str) -> list[list[str]]:
    service = unit(name)["Service"]
    return [shlex.split(line) for key, line in service.items() if key.startswith("Exec")]


def example(name: str) -> Path:
    """Return the example of the file that a unit reads."""
    return UNITS / Path(unit(name)["Service"]["EnvironmentFile"]).name


def _systemd(*words: str) -> subprocess.CompletedProcess[str]:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    return subprocess.run(
        ["systemd-analyze", *words], capture_output=True, text=True, check=False, timeout=60
    )


@pytest.mark.parametrize("name", NAMES)
def test_systemd_accepts_the_unit(name: str, tmp_path: Path) -> None:
    # It looks for the programs, which are elsewhere here.
    text = (UNITS / f"{name}.service").read_text()
    for words in commands(name):
        text = text.replace(words[0], started.command(words)[0])
    (tmp_path / f"{name}.service").write_text(text)

    done = _systemd("verify", "--man=no", str(tmp_path / f"{name}.service"))

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", NAMES)
def test_the_unit_is_confined(name: str) -> None:
    done = _systemd("security", "--offline=true", "--no-pager", str(UNITS / f"{name}.service"))

    exposure = re.search(r"Overall exposure level for \S+: ([\d.]+)", done.stdout)
    assert exposure is not None, done.stderr
    assert float(exposure[1]) <= _MOST_EXPOSED


@pytest.mark.parametrize("name", NAMES)
def test_the_unit_has_the_sections_and_commands_of_a_service(name: str) -> None:
    read = unit(name)

    assert read.sections() == ["Unit", "Service", "Install"]
    assert commands(name)
    for words in commands(name):
        assert words[0].startswith("/opt/windrow/bin/")
        if words[0].endswith("/windrow"):
            started.check_command(words)


def test_the_coordinator_is_started_as_in_the_image() -> None:
    words = shlex.split(unit("windrow")["Service"]["ExecStart"])

    assert [words[0].rpartition("/")[2], *words[1:]] == entrypoint()


@pytest.mark.parametrize("name", NAMES)
def test_the_example_sets_only_what_windrow_reads(name: str) -> None:
    text = example(name).read_text()
    named = set(re.findall(r"^#?(WINDROW_\w+)=", text, re.MULTILINE))

    assert named
    assert named <= started.setting_names() | started.OF_CLIENTS


def test_examples_units_and_image_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    values = variables(example("windrow"))
    for name, value in values.items():
        monkeypatch.setenv(name, value)

    settings = Settings()

    assert settings.tokens_required
    assert str(settings.state_dir) == f"/var/lib/{unit('windrow')['Service']['StateDirectory']}"
    assert str(settings.state_dir) == environment()["WINDROW_STATE_DIR"]
    assert str(settings.port) == environment()["WINDROW_PORT"]
    worker = variables(example("windrow-maintain"))
    assert worker["WINDROW_URL"] == f"http://{settings.host}:{settings.port}"


def test_the_page_names_files_and_units_that_exist() -> None:
    page = (ROOT / "docs" / "how-to" / "deploy.md").read_text()
    files = re.findall(r"deploy/systemd/[\w.-]+", page)

    assert {Path(name).name for name in files} == {path.name for path in UNITS.iterdir()}
    assert set(re.findall(r"systemctl enable --now (\S+)", page)) == set(NAMES)
    assert set(re.findall(r"EnvironmentFile=(\S+)", page)) == {
        unit("windrow")["Service"]["EnvironmentFile"]
    }


@pytest.mark.nightly
def test_the_commands_of_the_units_lead_to_a_first_plan(tmp_path: Path) -> None:
    tables, port = tmp_path / "tables", str(free_port())
    tables.mkdir()
    settings = variables(example("windrow")) | {
        "WINDROW_PORT": port,
        "WINDROW_ALLOWED_LOCATIONS": str(tables),
        "WINDROW_STATE_DIR": str(tmp_path / "state"),
    }
    first, second = commands("windrow")

    started.output(first, settings)
    with started.coordinator(second, settings, tmp_path / "coordinator.log") as url:
        client_of_worker = started.check_first_plan(SECTION, url, settings, tables / "events")
        client = variables(example("windrow-maintain")) | client_of_worker
        log = tmp_path / "coordinator.log"
        (words,) = commands("windrow-maintain")
        with started.process(words, client, tmp_path / "worker.log") as working:
            wait_until(lambda: "/maintenance/claims" in log.read_text() or bool(working.poll()))
            assert working.poll() is None, (tmp_path / "worker.log").read_text()
