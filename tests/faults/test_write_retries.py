"""A map task is run again in mid-write with its rows in another order: none is lost or doubled.

A random key silently loses and doubles rows on older Spark and fails the job on newer versions.
This is tested as well, since it is the reason why no random key is offered.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.lost_map_outputs import HAZARDS, SCHEMES
from tests.support.older_spark import python_with_older_spark

pytestmark = pytest.mark.spark

_ROOT = Path(__file__).parents[2]
_TIMEOUT_S = 300


def outcomes_with(python: str, scratch: Path) -> tuple[str, dict[str, dict[str, Any]]]:
    done = subprocess.run(
        [python, "-m", "tests.support.lost_map_outputs", str(scratch)],
        cwd=_ROOT,
        env={**os.environ, "PYSPARK_PYTHON": python},
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
    )
    assert done.returncode == 0, done.stderr[-5_000:]
    answer = json.loads(done.stdout.splitlines()[-1])
    return answer["version"], answer["outcomes"]


@pytest.fixture(scope="module")
def on_older_spark(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    version, outcomes = outcomes_with(python_with_older_spark(), tmp_path_factory.mktemp("older"))
    assert version.startswith("3.5.")
    return outcomes


@pytest.fixture(scope="module")
def on_this_spark(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    version, outcomes = outcomes_with(sys.executable, tmp_path_factory.mktemp("this"))
    assert not version.startswith("3.")
    return outcomes


def had_to_run_again(way: str, outcome: dict[str, Any]) -> bool:
    # Range schemes run the maps once more for their sample.
    return bool(outcome["deleted"] and outcome["runs"] > (2 if way.startswith("range") else 1))


@pytest.mark.parametrize("way", SCHEMES)
def test_no_scheme_loses_or_doubles_rows_when_a_map_runs_again(
    on_older_spark: dict[str, dict[str, Any]], on_this_spark: dict[str, dict[str, Any]], way: str
) -> None:
    for outcome in (on_older_spark[way], on_this_spark[way]):
        assert had_to_run_again(way, outcome)
        assert not outcome["failed"]
        assert (outcome["lost"], outcome["doubled"]) == (0, 0)


@pytest.mark.parametrize("way", HAZARDS)
def test_a_random_key_loses_and_doubles_rows_on_older_spark_and_fails_on_newer(
    on_older_spark: dict[str, dict[str, Any]], on_this_spark: dict[str, dict[str, Any]], way: str
) -> None:
    older, newer = on_older_spark[way], on_this_spark[way]
    assert not older["failed"]
    assert older["lost"] > 0
    assert older["doubled"] > 0
    assert newer["deleted"]
    assert newer["failed"]
