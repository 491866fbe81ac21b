"""Seeded faults in packing and pruning make tests fail, so the tests would notice real ones."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLANNER = "windrow_service/planner"
BALANCED = "tests/unit/planner/test_balanced.py"
PRUNE = "tests/unit/planner/test_prune.py"
LAWS = "tests/property/test_packing_laws.py"


def outcome(service: Path, *tests: str) -> subprocess.CompletedProcess[str]:
    """Run tests of the planner on a copy of the service, until one fails."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    return subprocess.run(
        [*command, "--hypothesis-profile=any-failure", *tests],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(service)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def service(tmp_path: Path) -> Path:
    """A copy of the service that a test may break."""
    copy = tmp_path / "service"
    shutil.copytree(ROOT / "service", copy, ignore=shutil.ignore_patterns("__pycache__"))
    return copy


@pytest.mark.nightly
def test_without_a_fault_the_same_tests_pass_on_the_copy(service: Path) -> None:
    shown = "import windrow_service; print(windrow_service.__file__)"
    where = subprocess.run(
        [sys.executable, "-c", shown],
        env={**os.environ, "PYTHONPATH": str(service)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert where.stdout.startswith(str(service))

    done = outcome(service, BALANCED, PRUNE, LAWS)

    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("tests", "module", "right", "wrong"),
    [
        pytest.param(
            LAWS,
            "packing/fill.py",
            "bytes_before + limits[0],",
            "bytes_before + limits[0] - 1,",
            id="limit-less-1",
            marks=pytest.mark.nightly,
        ),
        pytest.param(
            LAWS,
            "packing/fill.py",
            "bytes_before + limits[0],",
            "bytes_before + limits[0] + 1,",
            id="limit-plus-1",
            marks=pytest.mark.nightly,
        ),
        pytest.param(
            BALANCED,
            "splits.py",
            "= stable_order(number)",
            "= stable_order(number)[:-1]",
            id="lost-tail",
        ),
        pytest.param(
            BALANCED,
            "packing/strategies/balanced.py",
            "region = _dense(splits.bucket + 1)",
            "region = np.zeros(len(splits), np.int64)",
            id="mixed-bucket",
            marks=pytest.mark.nightly,
        ),
        pytest.param(
            PRUNE,
            "pruning/bounds.py",
            'lower = SortKeys.of(self._column("stats", at, 0)',
            'lower = SortKeys.of(self._column("stats", at, 1)',
            id="maximum-for-minimum",
            marks=pytest.mark.nightly,
        ),
        pytest.param(
            PRUNE,
            "pruning/bounds.py",
            "null = mask(pc.greater(null_count, 0).fill_null(True))",
            "null = mask(pc.less(null_count, 0).fill_null(False))",
            id="null-treated-as-a-value",
            marks=pytest.mark.nightly,
        ),
    ],
)
def test_a_seeded_fault_makes_a_test_fail(
    service: Path, tests: str, module: str, right: str, wrong: str
) -> None:
    path = service / PLANNER / module
    text = path.read_text()
    assert text.count(right) == 1, f"{module} has changed: seed the fault anew"
    path.write_text(text.replace(right, wrong))

    done = outcome(service, tests)

    # Code 1 means that tests failed; any other code means that they could not run.
    assert done.returncode == 1, done.stdout
    assert "AssertionError" in done.stdout
