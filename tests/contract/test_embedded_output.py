"""What a program prints that embeds a coordinator."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


# Not forked: the filters of warnings must be those of a program.
@pytest.mark.slow
def test_a_program_that_embeds_a_coordinator_prints_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.programs.embedded_calls", str(tmp_path)]

    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
