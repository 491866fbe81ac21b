"""Tasks run with the driver's Python unless another is chosen, and say what to set if it fails."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.spark.conftest import NEWEST
from tests.support.spark.older_spark import OLDEST, OTHERS, python_with_spark

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("version", [NEWEST, OLDEST, *OTHERS])
def test_tasks_use_the_drivers_python_unless_another_is_chosen(
    request: pytest.FixtureRequest, tmp_path: Path, version: str
) -> None:
    if not request.config.getoption("--all-sparks"):
        pytest.skip("drivers that are not activated are tried by --all-sparks")
    location = tmp_path / "table"
    location.mkdir()
    pq.write_table(pa.table({"id": [7]}), location / "a.parquet")
    # The first Python of the path lacks all packages.
    venv.create(tmp_path / "bare", with_pip=False)
    bare = str(tmp_path / "bare" / "bin" / "python3")

    outcomes = outcomes_on(version, [str(location), str(tmp_path / "state"), bare])

    assert outcomes["unchosen"] == {"read": [7], "read_plan": [7], "count": 1, "job": 1}
    assert outcomes["users"] == bare
    for text in outcomes["chosen"].values():
        assert "No module named" in text
        assert "PYSPARK_PYTHON" in text
        assert "spark.pyspark.python" in text
        assert "\n" not in text
    assert bare in outcomes["chosen"]["read"]
    assert outcomes["set"] == "/a/python"


def outcomes_on(version: str, arguments: list[str]) -> dict[str, Any]:
    """Run the program on a Spark, in an environment that is not activated."""
    python = sys.executable if version == NEWEST else python_with_spark(version)
    environment = {name: value for name, value in os.environ.items() if name != "PYSPARK_PYTHON"}
    environment["PATH"] = os.pathsep.join([str(Path(arguments[-1]).parent), environment["PATH"]])
    done = subprocess.run(
        [python, "-m", "tests.programs.local_interpreter", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-5_000:]
    outcomes: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return outcomes
