"""Tables on sessions of Spark Connect, each with a server of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.servers import running
from windrow_service.settings import Settings

pytestmark = pytest.mark.spark

_ROOT = Path(__file__).parents[2]
_TIMEOUT_S = 600


@pytest.fixture(scope="module")
def connected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The results of `tests.support.on_spark_connect`."""
    folder = tmp_path_factory.mktemp("connect")
    python = sys.executable
    with running(Settings(state_dir=folder / "state", allowed_locations=[str(folder)])) as url:
        done = subprocess.run(
            [python, "-m", "tests.support.on_spark_connect", url, str(folder)],
            cwd=_ROOT,
            env={**os.environ, "PYSPARK_PYTHON": python},
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
        )
    assert done.returncode == 0, done.stderr[-5_000:]
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def test_a_table_on_spark_connect_has_the_rows_that_spark_reads(connected: dict[str, Any]) -> None:
    rows, types = connected["rows"], connected["types"]

    assert rows["ours"] == rows["expected"]
    assert len(rows["ours"]) == 60
    # One for each slot: the session's parallelism is known.
    assert rows["tasks"] == 2
    assert types["ours"] == types["expected"]
    assert types["schemas"][0] == types["schemas"][1]


def test_options_of_the_format_hold_on_spark_connect(connected: dict[str, Any]) -> None:
    options = connected["options"]

    assert options["columns"] == ["ds", "id"]
    assert options["days"] == [["2026-11-02", 20, 590], ["2026-11-03", 20, 990]]
    assert options["empty"] == 0
    assert options["tasks"] == 6
    assert options["default"] == 60
    assert connected["types"]["pruned"] == [1]


def test_filters_of_one_query_do_not_reach_others_on_spark_connect(
    connected: dict[str, Any],
) -> None:
    assert connected["filters"] == {"one": 1, "all": 60, "both": [3, 4], "view": [7, 60]}


def test_views_and_named_snapshots_stay_as_they_were_on_spark_connect(
    connected: dict[str, Any],
) -> None:
    assert connected["snapshots"] == {"view": 60, "named": 60, "new": 65}


def test_what_cannot_be_read_on_spark_connect_is_refused_by_name(
    connected: dict[str, Any],
) -> None:
    refusals = connected["refusals"]

    assert refusals["changed"].startswith("TaskFailedError: file ")
    assert "part-00000.parquet' has changed since the plan was made" in refusals["changed"]
    assert "sales.nothing" in refusals["missing"]
    assert "write LIMIT in the query" in refusals["limit"]
    assert "leave out 'reader'" in refusals["native"]
    assert "leave out .schema(" in refusals["schema"]
    assert "windrow.register(spark)" in refusals["client.read"]
    assert refusals["case"].startswith("CaseSensitiveNamesError")
