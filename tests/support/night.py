"""The tests of which nightly runs do more than daily ones, in slices.

    python -m tests.support.night [SLICE|all]

runs a slice: the one that is named, or the one whose turn it is, by the number of commits. `all` runs
them one after the other, and records how long each test takes, by which tests are cut into slices.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import zlib
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import pytest
from hypothesis import is_hypothesis_test, settings

SLICES = 10
_ROOT = Path(__file__).parents[2]
# Seconds, by test; without the file, slices have equal numbers of tests.
DURATIONS = _ROOT / "tests" / "night_durations.json"
_Case = TypeVar("_Case")
# Modules that do more at night have one of these names from `laws.py`.
_OF_LAWS = {"a_few", "in_turn", "is_nightly", "times"}


def select(items: list[pytest.Item]) -> None:
    """Leave only marked tests of which nightly runs do more, file by file.

    Neighbours are of all kinds, so that each slice keeps all processes busy.
    """
    items[:] = [item for item in items if _needs_a_night(item)]
    items.sort(key=lambda item: zlib.crc32(item.nodeid.partition("::")[0].encode()))


def _needs_a_night(item: pytest.Item) -> bool:
    if any(item.get_closest_marker(name) for name in ("nightly", "every_spark")):
        return True
    return isinstance(item, pytest.Function) and (
        is_hypothesis_test(item.obj) or bool(_OF_LAWS & vars(item.module).keys())
    )


def turn() -> int:
    """Return the number of the slice whose turn it is: another one after each commit."""
    return _commits() % SLICES + 1


def of_round(cases: Sequence[_Case], count: int) -> Sequence[_Case]:
    """Return so many long cases if this is a slice, others after each round of slices; otherwise all."""
    if settings.get_current_profile_name() != "slice":
        return cases
    first = _commits() // SLICES * count
    return [cases[(first + nth) % len(cases)] for nth in range(min(count, len(cases)))]


def _commits() -> int:
    """Return the number of commits, or of days where there is no history."""
    command = ["git", "rev-list", "--count", "HEAD"]
    done = subprocess.run(command, cwd=_ROOT, stdout=subprocess.PIPE, text=True, check=False)
    count = int(done.stdout) if done.returncode == 0 else 0
    return count if count > 1 else int(time.time() / 86_400)


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _run(number: int, durations: Path) -> int:
    """Run a slice; times of tests, by which they are cut, are read from a file and added there."""
    name = f"slice {number} of {SLICES} of the nightly tests"
    _say(f"Running {name}")
    began = time.monotonic()
    options = ["--hypothesis-profile=slice", "--all-sparks", "--store-durations"]
    slices = [f"--splits={SLICES}", f"--group={number}", f"--durations-path={durations}"]
    done = subprocess.run([sys.executable, "-m", "pytest", *options, *slices], cwd=_ROOT)
    minutes = (time.monotonic() - began) / 60
    if done.returncode:
        again = f"make test-slice SLICE={number}"
        _say(f"Failed after {minutes:.1f} min: {name}. Run it again: {again}")
    else:
        _say(f"Passed in {minutes:.1f} min: {name}")
    return done.returncode


def _record() -> str:
    return DURATIONS.read_text() if DURATIONS.exists() else "{}"


def _run_all(folder: Path) -> int:
    record = _record()
    before = json.loads(record)
    seconds: dict[str, float] = {}
    codes = []
    for number in range(1, SLICES + 1):
        # All slices are cut by the same times.
        durations = folder / f"{number}.json"
        durations.write_text(record)
        codes.append(_run(number, durations))
        after = json.loads(durations.read_text()).items()
        seconds |= {test: round(s, 2) for test, s in after if before.get(test) != s}
        DURATIONS.write_text(json.dumps(seconds, indent=0, sort_keys=True) + "\n")
    return max(codes)


def main(arguments: list[str]) -> int:
    """Run a slice or all of them; return 0 if no test failed."""
    with TemporaryDirectory() as folder:
        if arguments == ["all"]:
            return _run_all(Path(folder))
        durations = Path(folder, "durations.json")
        durations.write_text(_record())
        return _run(int(arguments[0]) if arguments else turn(), durations)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
