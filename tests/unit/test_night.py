"""Nightly tests are cut into slices; whose turn it is changes with each commit."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from pytest_split.algorithms import Algorithms

from tests.support import night
from tests.support.laws import is_nightly, times

pytest_plugins = ["pytester"]

_SAMPLE = """
import pytest
from hypothesis import given, strategies as st

@pytest.mark.nightly
@pytest.mark.parametrize("number", range(3))
def test_marked(number): pass

@given(st.integers())
def test_law(number): pass

def test_same_by_day(): pass
"""


@pytest.fixture
def items(pytester: pytest.Pytester) -> list[pytest.Item]:
    # Otherwise only a run that has collected other tests knows the mark.
    pytester.makeini("[pytest]\nmarkers = nightly")
    pytester.makepyfile(
        test_sample=_SAMPLE, test_cases="from tests.support.laws import a_few\n" + _SAMPLE
    )
    return pytester.inline_genitems()[0]


def test_a_slice_has_only_tests_of_which_nightly_runs_do_more(items: list[pytest.Item]) -> None:
    night.select(items)

    names = Counter(item.nodeid.partition("[")[0] for item in items)
    assert names == {
        "test_sample.py::test_marked": 3,
        "test_sample.py::test_law": 1,
        "test_cases.py::test_marked": 3,
        "test_cases.py::test_law": 1,
        "test_cases.py::test_same_by_day": 1,
    }


def test_each_nightly_test_is_in_one_slice(items: list[pytest.Item]) -> None:
    night.select(items)
    every = list(items)

    groups = Algorithms["duration_based_chunks"].value(night.SLICES, every, {every[0].nodeid: 5.0})

    sliced = [item for group in groups for item in group.selected]
    assert Counter(sliced) == Counter(every)


def test_the_slice_changes_with_each_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(night, "_ROOT", tmp_path)
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@localhost"]
    subprocess.run([*git, "init", "--quiet"], check=True)
    turns = []
    for _ in range(night.SLICES + 1):
        command = [*git, "commit", "--quiet", "--allow-empty", "--message=change"]
        subprocess.run(command, check=True)
        turns.append(night.turn())

    # The first commit is like a copy without the history.
    assert sorted(turns[1:]) == list(range(1, night.SLICES + 1))


@pytest.fixture
def profile() -> Iterator[Callable[[str], None]]:
    """Load a profile until the test ends."""
    before = settings.get_current_profile_name()
    yield settings.load_profile
    settings.load_profile(before)


def test_each_long_case_has_its_turn_in_the_one_slice_that_it_is_in(
    profile: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    profile("slice")
    cases, turns = list(range(7)), Counter[int]()
    for round_ in range(7):
        # The number of commits when the turn is always that of the same slice.
        count = 4 + round_ * night.SLICES
        monkeypatch.setattr(night, "_commits", lambda count=count: count)
        turns.update(night.of_round(cases, 2))

    assert turns == Counter(cases * 2)


def test_a_whole_night_has_all_long_cases(profile: Callable[[str], None]) -> None:
    profile("nightly")

    assert night.of_round([1, 2, 3], 2) == [1, 2, 3]


def test_a_copy_without_a_history_has_a_slice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(night, "_ROOT", tmp_path)

    assert 1 <= night.turn() <= night.SLICES


def test_a_slice_does_more_than_a_day() -> None:
    assert times(20_000, by_day=50) >= (1_000 if is_nightly() else 50)
