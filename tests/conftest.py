"""How Hypothesis runs here, the order of the tests, and what processes find that tests start.

Then one PostgreSQL server for all tests that only need a database on one.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

from tests.support import quick_spark

# A busy machine makes drawing slow; that says nothing about the code.
_ANY_SPEED = [HealthCheck.too_slow]
# The same examples every time; or others every night, and many: see tests/support/laws.py.
settings.register_profile(
    "ci", deadline=None, max_examples=40, derandomize=True, suppress_health_check=_ANY_SPEED
)
settings.register_profile(
    "nightly", deadline=None, max_examples=2_000, suppress_health_check=_ANY_SPEED
)
# For who wants to know that an example fails, and not which is the smallest.
settings.register_profile(
    "any-failure", settings.get_profile("ci"), phases=(Phase.explicit, Phase.generate)
)
settings.load_profile("ci")

quick_spark.set_up(os.environ)
# Processes that tests start import what is compiled, also where the shell asks for nothing to be.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

_TESTS = Path(__file__).parent
# Of what these folders hold, most takes seconds: processes that are started and killed.
_SLOW_FOLDERS = {"browser", "deploy", "faults"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by where they lie, and put the long ones first.

    The many short files at the end then keep both processes of a run busy.
    """
    for item in items:
        folder = item.path.relative_to(_TESTS).parts[0]
        if folder == "spark":
            item.add_marker(pytest.mark.spark)
        if folder in _SLOW_FOLDERS or item.get_closest_marker("spark"):
            item.add_marker(pytest.mark.slow)
    items.sort(key=_place_in_line)


def _place_in_line(item: pytest.Item) -> int:
    if "spark" in getattr(item, "fixturenames", ()):
        return 0
    return 1 if item.get_closest_marker("spark") else 2 if item.get_closest_marker("slow") else 3


@pytest.fixture(scope="session", autouse=True)
def _ctrl_c_is_heeded() -> Iterator[None]:
    """Let commands that are started here end by Ctrl-C, wherever the tests run.

    A shell lets what it starts in the background ignore it, and so would all that starts there.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


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
