"""The doctor names each planted fault and what mends it, and finds none where there is none."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

import windrow
from tests.support.faults.disks import small_disk
from tests.support.servers.coordinators import coordinator_process, free_port, running
from windrow_calls.diagnosis import Check, Diagnosis
from windrow_cli.app import run
from windrow_service.settings import Settings


@pytest.fixture(autouse=True)
def nothing_is_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "WINDROW_TOKEN", "WINDROW_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    work = tmp_path_factory.mktemp("coordinator")
    with coordinator_process(work / "state", work) as coordinator:
        yield coordinator.url


def diagnosis_of(url: str, token: str | None = None) -> Diagnosis:
    with windrow.connect(url, token=token, attempts=1, check=False) as client:
        return client.doctor()


def faults_in(diagnosis: Diagnosis) -> dict[str, Check]:
    """Return what is wrong by its subject; whether tests have a guide is not their subject."""
    checks = {check.subject: check for check in diagnosis.checks if check.state != "ok"}
    checks.pop("guide", None)
    return checks


def test_nothing_is_wrong_where_everything_works(url: str) -> None:
    diagnosis = diagnosis_of(url)

    assert faults_in(diagnosis) == {}
    assert not diagnosis.has_failures
    subjects = {check.subject for check in diagnosis.checks}
    assert {"python", "java", "class cache", "coordinator", "token", "locations"} <= subjects


def test_a_coordinator_that_does_not_run_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    assert run(["doctor", "--url", url]) == 1

    output = capsys.readouterr().out
    assert f"{url} does not answer" in output
    assert "windrow serve --allow" in output


def test_the_exit_code_is_0_where_nothing_fails(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["doctor", "--url", url]) == 0
    assert "FAILED" not in capsys.readouterr().out


def _old_java(folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    java = folder / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(folder / "java"))
    return "too old for Spark 4"


def _no_java(folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("JAVA_HOME", str(folder))
    return "cannot be run"


def _bare_python(folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "bare"], check=True)
    monkeypatch.setenv("PYSPARK_PYTHON", str(folder / "bare" / "bin" / "python"))
    return "cannot run tasks: ModuleNotFoundError"


def _open_cache(folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    classes = folder / "open" / "windrow"
    classes.mkdir(parents=True)
    classes.chmod(0o777)
    monkeypatch.setenv("XDG_CACHE_HOME", str(classes.parent))
    return "others may write"


@pytest.mark.parametrize(
    ("subject", "plant", "remedy"),
    [
        ("java", _old_java, "install Java 17"),
        ("java", _no_java, "install Java 17"),
        ("PYSPARK_PYTHON", _bare_python, f"export PYSPARK_PYTHON={sys.executable}"),
        ("class cache", _open_cache, "set XDG_CACHE_HOME"),
    ],
)
def test_a_fault_of_the_machine_is_named_with_what_mends_it(
    subject: str,
    plant: Callable[[Path, pytest.MonkeyPatch], str],
    remedy: str,
    url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reason = plant(tmp_path, monkeypatch)

    (check,) = faults_in(diagnosis_of(url)).values()

    assert check.subject == subject
    assert reason in check.result
    assert remedy in check.remedy


def test_a_full_disk_is_named(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with small_disk(tmp_path / "disk", 2**20) as disk:
        monkeypatch.setattr("tempfile.tempdir", str(disk))
        (check,) = faults_in(diagnosis_of(url)).values()
    assert (check.subject, check.state) == ("disk", "warning")
    assert str(disk) in check.result


def test_a_token_that_is_missing_or_wrong_is_named(tmp_path: Path) -> None:
    settings = Settings(state_dir=tmp_path, allowed_locations=(str(tmp_path),), require_tokens=True)
    with running(settings) as url:
        for token in (None, "windrow_wrong"):
            check = faults_in(diagnosis_of(url, token))["token"]
            assert check.state == "failure"
            assert "windrow token create" in check.remedy


def test_a_coordinator_without_locations_is_named(tmp_path: Path) -> None:
    with running(Settings(state_dir=tmp_path)) as url:
        assert faults_in(diagnosis_of(url))["locations"].state == "failure"


def test_a_clock_of_the_past_is_named(
    url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class Late(datetime):
        @classmethod
        def now(cls, tz: timezone | None = None) -> datetime:  # type: ignore[override]
            return datetime.now(tz) + timedelta(hours=2)

    monkeypatch.setattr("windrow_calls.coordinator_checks.datetime", Late)

    (check,) = faults_in(diagnosis_of(url)).values()

    assert check.subject == "clock"
    assert "2 hours" in check.result
