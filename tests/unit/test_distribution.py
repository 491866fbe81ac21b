"""Files are distributed over the processes of a test run so that little is started twice."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import settings

from tests import conftest
from tests.support.distribution import WholeFiles, shared_by
from tests.support.laws import a_few, examples, is_nightly

_TESTS = Path(__file__).parents[1]
_FILES = [
    str(path.relative_to(_TESTS.parent))
    for folder in ("spark", "unit/planner", "unit/cli")
    for path in sorted((_TESTS / folder).rglob("test_*.py"))
]
_ALL = [f"{file}::test_{number}" for file in _FILES for number in range(4)]


class Process:
    """A process of a run as the scheduler sees it: it is sent numbers of tests."""

    def __init__(self, number: int) -> None:
        self.gateway = SimpleNamespace(id=f"gw{number}")
        self.sent: list[int] = []
        self.shutting_down = False

    def send_runtest_some(self, numbers: list[int]) -> None:
        self.sent += numbers

    def shutdown(self) -> None:
        self.shutting_down = True


@pytest.mark.parametrize("count", [1, 2, 3, 4, 60])
def test_every_test_runs_once_and_few_processes_start_what_files_share(
    pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    monkeypatch.setattr(pytestconfig.option, "tx", ["popen"] * count)
    scheduler = WholeFiles(pytestconfig)
    processes: list[Any] = [Process(number) for number in range(count)]
    for process in processes:
        scheduler.add_node(process)
        scheduler.add_node_collection(process, _ALL)

    scheduler.schedule()
    done = [0] * count
    while any(done[at] < len(process.sent) for at, process in enumerate(processes)):
        for at, process in enumerate(processes):
            if done[at] < len(process.sent):
                done[at] += 1
                scheduler.mark_test_complete(process, process.sent[done[at] - 1])

    assert sorted(number for process in processes for number in process.sent) == list(
        range(len(_ALL))
    )
    starts: dict[str, int] = defaultdict(int)
    for process in processes:
        files = {_ALL[number].split("::")[0] for number in process.sent}
        for name in frozenset[str]().union(*map(shared_by, files)):
            starts[name] += 1
    assert starts == {
        "session": min(count, 2),
        "cluster": 1,
        "older Spark": 1,
        "benchmarks": 1,
        "coordinator of commands": 1,
    }


@pytest.mark.parametrize(
    ("given", "count"),
    [
        ({}, 4),
        ({"markexpr": "not spark and not slow"}, 3),
        # These include slow tests.
        ({"markexpr": "browser or not slow"}, 4),
        ({"markexpr": "not slow and spark or browser"}, 4),
        ({"usepdb": True}, None),
        ({"args_source": pytest.Config.ArgsSource.ARGS}, None),
        # The first four processes would start four more each, and so on.
        ({"workerinput": {}}, None),
    ],
)
def test_only_a_run_of_all_tests_starts_processes_and_they_start_no_more(
    given: dict[str, Any], count: int | None
) -> None:
    option = SimpleNamespace(numprocesses=None, markexpr="", usepdb=False)
    config: Any = SimpleNamespace(option=option, args_source=pytest.Config.ArgsSource.TESTPATHS)
    for name, value in given.items():
        setattr(option if hasattr(option, name) else config, name, value)

    conftest.pytest_cmdline_main(config)

    assert option.numprocesses == count


@pytest.mark.parametrize(
    ("expression", "left_out"),
    [
        ("", set()),
        ("not spark", set()),
        ("browser or not slow", set()),
        ("not spark and not slow", {"browser", "deploy", "faults", "spark"}),
    ],
)
def test_folders_of_slow_tests_are_left_out_only_with_all_slow_tests(
    expression: str, left_out: set[str]
) -> None:
    config: Any = SimpleNamespace(option=SimpleNamespace(markexpr=expression))

    ignored = {
        folder.name
        for folder in _TESTS.iterdir()
        if conftest.pytest_ignore_collect(folder, config) is not None
    }

    assert ignored == left_out


@pytest.mark.parametrize(("profile", "counts"), [("ci", (15, 10)), ("nightly", (2_000, 800))])
def test_nightly_runs_try_many_more_examples(profile: str, counts: tuple[int, int]) -> None:
    before = settings.get_current_profile_name()
    settings.load_profile(profile)
    try:
        found = settings().max_examples, examples(40).max_examples
    finally:
        settings.load_profile(before)

    assert found == counts


def test_a_few_of_the_listed_cases_are_tried_by_day_and_all_at_night() -> None:
    cases = ["a", "b", "c", "d"]

    assert a_few(cases, 3) == (cases if is_nightly() else ["a", "d"])
