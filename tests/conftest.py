"""Hypothesis profiles, the order of tests, and the environment of processes that tests start.

Also one PostgreSQL server for all tests that only need a database.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, Phase, settings
from xdist.remote import Producer

from tests.support import night, scratch
from tests.support.distribution import SLOW_FOLDERS, WholeFiles, place_in_line
from tests.support.laws import is_nightly
from tests.support.spark import quick_spark

if TYPE_CHECKING:
    from tests.support.faults.writers import Writers

# Drawing examples is slow on a busy machine, which says nothing about the code.
_ANY_SPEED = [HealthCheck.too_slow]
# The same examples in every run, or more and different ones every night: see tests/support/laws.py.
settings.register_profile(
    "ci", deadline=None, max_examples=15, derandomize=True, suppress_health_check=_ANY_SPEED
)
for _night, _examples in (("nightly", 2_000), ("slice", 100)):
    settings.register_profile(
        _night, deadline=None, max_examples=_examples, suppress_health_check=_ANY_SPEED
    )
# Shows only that an example fails, without finding the smallest one.
settings.register_profile(
    "any-failure", settings.get_profile("ci"), phases=(Phase.explicit, Phase.generate)
)
settings.load_profile("ci")

scratch.set_up(os.environ)
quick_spark.set_up(os.environ)
# NumPy's linear algebra, which hardly anything uses, would start a thread per core in every process.
os.environ["OPENBLAS_NUM_THREADS"] = "1"
# Tests and the processes that they start use compiled modules, even if the shell's environment forbids
# it: otherwise each process of a run would compile all tests and rewrite their assertions.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# The width of the terminal, which processes of a run are told, is not that of a command's pipe.
os.environ.pop("COLUMNS", None)

# The half million objects made before the first test live until the end. Collecting garbage among
# them took a tenth of the time of a run.
gc.disable()

_TESTS = Path(__file__).parent
_ON_EVERY_SPARK = {
    "also_on_older_sparks",
    "early_ends",
    "on_older_sparks",
    "on_spark_connect",
    "on_thrift_servers",
    "streams_on_older_sparks",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that `make test-sparks` uses."""
    parser.addoption(
        "--all-sparks",
        action="store_true",
        help="run the tests of every supported Spark also on releases between oldest and newest",
    )


def _only_quick(config: pytest.Config) -> bool:
    """Return whether slow tests are left out, whatever else is."""
    expression = config.option.markexpr
    return "not slow" in expression.split(" and ") and "or" not in expression.split()


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Run all tests in four processes, and the files that a developer names in one.

    Four processes keep two cores busy, as tests wait half the time: for other processes, leases and
    timeouts. Quick tests wait less, and three are enough. The processes share the tests as
    `tests/support/distribution.py` says, in its order.
    """
    options = config.option
    # These processes are started with the same options, and must not start more themselves.
    is_one_of_them = hasattr(config, "workerinput")
    is_whole = config.args_source is pytest.Config.ArgsSource.TESTPATHS
    if is_one_of_them or not is_whole or options.usepdb:
        return
    if getattr(options, "numprocesses", 0) is None:
        options.numprocesses = 3 if _only_quick(config) else 4
        options.dist, options.loadscopereorder = "loadfile", False


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import files of slow folders where slow tests are left out."""
    is_slow = collection_path.parent == _TESTS and collection_path.name in SLOW_FOLDERS
    return True if is_slow and _only_quick(config) else None


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Iterator[None]:
    """Mark tests by their folder, leave out what a slice of the night lacks, and run long ones first."""
    is_thorough = is_nightly() or config.getoption("--all-sparks")
    for item in items:
        folder = item.nodeid.split("/")[1]
        if folder == "spark":
            item.add_marker(pytest.mark.spark)
        if _ON_EVERY_SPARK & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.every_spark)
        if item.get_closest_marker("nightly") and not is_thorough:
            item.add_marker(pytest.mark.skip(reason="runs in `make test-nightly`"))
        if folder in SLOW_FOLDERS or item.get_closest_marker("spark"):
            item.add_marker(pytest.mark.slow)
    if config.getoption("--group") is not None:
        night.select(items)
    # The plugin `pytest-split` takes those of a slice.
    result = yield
    items.sort(key=place_in_line)
    return result


def pytest_collection_finish() -> None:
    """Collect garbage from now on, but only among objects that tests make."""
    gc.freeze()
    # Memory suffices to collect less often than programs should.
    gc.set_threshold(20_000, 20, 50)
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> WholeFiles | None:
    """Return the scheduler of `--dist loadfile`."""
    return WholeFiles(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.fixture(scope="module")
def writers() -> Iterator[Writers]:
    """Drivers that can be made to die at a step of a commit."""
    from tests.support.faults.writers import forking_writers

    with forking_writers() as writers:
        yield writers


@pytest.fixture(scope="session", autouse=True)
def _ctrl_c_is_heeded() -> Iterator[None]:
    """Make commands that tests start react to Ctrl-C, however the tests were started.

    A shell makes background commands ignore Ctrl-C, and their child processes inherit that.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[str]:
    """URL of a PostgreSQL server on which tests create their own databases."""
    from tests.support.servers.databases import server_url

    with server_url() as url:
        yield url


@pytest.fixture
def postgresql_url(postgresql_server: str) -> Iterator[str]:
    """URL of an empty PostgreSQL database."""
    from tests.support.servers.databases import new_database

    with new_database(postgresql_server) as url:
        yield url


@pytest.fixture(scope="session")
def _newest_database(postgresql_server: str) -> Iterator[str]:
    """Name of a PostgreSQL database at the newest revision, to be copied."""
    from tests.support.servers.databases import new_database
    from windrow_service.store.database import server_url, upgrade_database

    with new_database(postgresql_server) as url:
        upgrade_database(server_url(url))
        yield str(sa.make_url(url).database)


@pytest.fixture
def upgraded_postgresql_url(postgresql_server: str, _newest_database: str) -> Iterator[str]:
    """URL of an empty PostgreSQL database at the newest revision."""
    from tests.support.servers.databases import new_database

    with new_database(postgresql_server, copied_from=_newest_database) as url:
        yield url
