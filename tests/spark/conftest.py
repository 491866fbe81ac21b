"""Fixtures that tests on Spark share: one session, and reports from other releases of Spark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyspark
import pytest
from pyspark.sql import SparkSession

import windrow
from tests.support.laws import is_nightly
from tests.support.servers import embedded
from tests.support.servers.coordinators import running
from tests.support.spark import quick_spark
from tests.support.spark.older_spark import OLDEST, OTHERS, python_with_spark
from windrow_service.settings import Settings

NEWEST = pyspark.__version__

_ROOT = Path(__file__).parents[2]
_OLDER_TIMEOUT_S = 1_500


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session on loopback with two slots."""
    # Without this, executors run the `python3` of PATH. It must be set before the session starts.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    quick_spark.remember_classes()
    scratch: Path = tmp_path_factory.mktemp("spark")
    builder = (
        SparkSession.builder.master("local[2]")
        .appName("windrow-tests")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", "1536m")
        # A small heap would be collected after every few queries, and most of it is long-lived.
        .config("spark.driver.extraJavaOptions", "-Xms1g -Xmn512m")
        # Kept for its UI, the details of thousands of queries would exhaust the memory of Spark.
        .config("spark.sql.ui.retainedExecutions", "10")
        .config("spark.sql.ui.explainMode", "simple")
        .config("spark.ui.retainedJobs", "10")
        .config("spark.ui.retainedStages", "10")
        .config("spark.ui.retainedTasks", "100")
        .config("spark.local.dir", str(scratch / "local"))
        .config("spark.sql.warehouse.dir", str(scratch / "warehouse"))
        .config("spark.sql.shuffle.partitions", "2")
        # Not UTC, to expose readers that confuse instants with local times.
        .config("spark.sql.session.timeZone", "America/New_York")
    )
    # Results are compared with those of Spark as users run it, so queries are compiled.
    for name, value in quick_spark.COMPILED.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    quick_spark.java_object(session, "PlainFiles").install()
    yield session
    session.stop()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for the tables of a module."""
    return tmp_path_factory.mktemp("tables")


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[windrow.Client]:
    """A client of a coordinator for the tables in the module's folder."""
    with embedded.client(folder / "state", allowed_locations=[str(folder)]) as client:
        yield client


@pytest.fixture(scope="module")
def interpreted(spark: SparkSession) -> Iterator[None]:
    """Interpret queries, for modules that test what is read or written rather than the queries."""
    for name, value in quick_spark.INTERPRETED.items():
        spark.conf.set(name, value)
    yield
    for name in quick_spark.INTERPRETED:
        spark.conf.unset(name)


@pytest.fixture(scope="session")
def also_on_older_sparks(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> list[dict[str, Any]]:
    """The results of `tests.programs.on_older_spark` on each older release of Spark.

    Without `--all-sparks` there are none, for tests that look at the newest Spark, too.
    """
    if not _tries_all(request):
        return []
    return _reports("on_older_spark", (OLDEST, *OTHERS), tmp_path_factory.mktemp("older"))


@pytest.fixture(scope="session")
def on_older_sparks(also_on_older_sparks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same results, for tests that look at nothing else."""
    if not also_on_older_sparks:
        pytest.skip("older releases of Spark are tried by --all-sparks")
    return also_on_older_sparks


@pytest.fixture(scope="session")
def on_spark_connect(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> list[dict[str, Any]]:
    """The results of `tests.programs.on_spark_connect` on each release of Spark."""
    folder = tmp_path_factory.mktemp("connect")
    if not (is_nightly() or _tries_all(request)):
        return [_report("on_spark_connect", NEWEST, folder / NEWEST, "quick")]
    versions = (NEWEST, *OTHERS) if _tries_all(request) else (NEWEST,)
    return _reports("on_spark_connect", versions, folder)


@pytest.fixture(scope="session")
def early_ends(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> list[dict[str, Any]]:
    """The results of `tests.programs.early_ends` on each release of Spark."""
    versions = (NEWEST, OLDEST, *OTHERS) if _tries_all(request) else (NEWEST,)
    return _reports("early_ends", versions, tmp_path_factory.mktemp("early"))


@pytest.fixture(scope="session")
def on_thrift_servers(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> list[dict[str, Any]]:
    """The results of `tests.programs.on_thrift_server` on each release of Spark."""
    if not _tries_all(request):
        pytest.skip("Thrift servers are tried by --all-sparks")
    versions = (NEWEST, OLDEST, *OTHERS)
    return _reports("on_thrift_server", versions, tmp_path_factory.mktemp("thrift"))


@pytest.fixture(scope="session")
def streams_on_older_sparks(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> list[dict[str, Any]]:
    """The results of `tests.programs.streams_on_older_spark` on each older release of Spark."""
    if not _tries_all(request):
        pytest.skip("streams on older releases of Spark are tried by --all-sparks")
    folder = tmp_path_factory.mktemp("streams")
    return _reports("streams_on_older_spark", (OLDEST, *OTHERS), folder)


def _tries_all(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--all-sparks"))


def _reports(name: str, versions: Sequence[str], folder: Path) -> list[dict[str, Any]]:
    return [_report(name, version, folder / version) for version in versions]


def _report(name: str, version: str, folder: Path, *more: str) -> dict[str, Any]:
    """Run a program of `tests.support` on a release of Spark; return what it reports."""
    folder.mkdir()
    python = sys.executable if version == NEWEST else python_with_spark(version)
    environment = {**os.environ, "PYSPARK_PYTHON": python}
    quick_spark.set_up(environment, Path(python).parents[1])
    settings = Settings(state_dir=folder / "state", allowed_locations=[str(folder)])
    with running(settings) as url:
        done = subprocess.run(
            [python, "-m", f"tests.programs.{name}", url, str(folder), *more],
            cwd=_ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=_OLDER_TIMEOUT_S,
        )
    assert done.returncode == 0, done.stderr[-5_000:]
    report: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert report["version"] == version
    return report | {"stderr": done.stderr}
