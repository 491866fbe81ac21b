"""How Hypothesis runs here: the same examples every time, and no verdict on speed.

Then what processes find that tests start, and one PostgreSQL server for all tests that only need
a database on one.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "windrow",
    deadline=None,
    derandomize=True,
    # A busy machine makes drawing slow; that says nothing about the code.
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("windrow")


@pytest.fixture(scope="session", autouse=True)
def _ctrl_c_is_heeded() -> Iterator[None]:
    """Let commands that are started here end by Ctrl-C, wherever the tests run.

    A shell lets what it starts in the background ignore it, and so would all that starts there.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session", autouse=True)
def _spark_starts_soon() -> Iterator[None]:
    """Let every JVM that is started here take less of the processors for itself."""
    quick = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_CONF_DIR", str(Path(__file__).parent / "support" / "spark"))
        patch.setenv("SPARK_DAEMON_JAVA_OPTS", quick)
        patch.setenv("SPARK_LAUNCHER_OPTS", quick)
        yield


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[str]:
    """URL of a PostgreSQL server on which tests make databases of their own."""
    from tests.support.databases import server_url

    with server_url() as url:
        yield url


@pytest.fixture
def postgresql_url(postgresql_server: str) -> Iterator[str]:
    """URL of an empty PostgreSQL database."""
    from tests.support.databases import new_database

    with new_database(postgresql_server) as url:
        yield url
