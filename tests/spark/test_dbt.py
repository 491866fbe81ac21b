"""dbt runs the models of docs/how-to/dbt.md: their rows are right, and later runs are planned."""

from __future__ import annotations

import json
import re
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

from tests.support.processes.environments import python_with, skipped_without

pytestmark = [pytest.mark.spark, pytest.mark.nightly]

ROOT = Path(__file__).parents[2]
_FILE = re.compile(r"^```\w+\n(?:#|--) (\S+)\n(.*?)^```", re.M | re.S)
_PACKAGES = ("dbt-core~=1.10.0", "dbt-spark~=1.10.0")


@pytest.fixture(scope="module")
def python() -> str:
    """The interpreter of an environment with dbt."""
    with skipped_without("dbt"):
        return python_with(_PACKAGES, ".venv-dbt", ".installed-1.10")


def daily(days: dict[str, range | list[int]]) -> list[list[object]]:
    sums: defaultdict[tuple[str, str], int] = defaultdict(int)
    for day, ids in days.items():
        for id_ in ids:
            sums[f"c{id_ % 3}", day] += id_
    return sorted([customer, amount, day] for (customer, day), amount in sums.items())


def test_models_run_as_the_page_says(python: str, tmp_path: Path) -> None:
    files = _FILE.findall((ROOT / "docs/how-to/dbt.md").read_text())
    for name, text in files:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert {name for name, _ in files} >= {"run_dbt.py", "profiles.yml", "models/daily.sql"}

    done = subprocess.run(
        [python, "-m", "tests.programs.on_dbt", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-5_000:]
    first, second = json.loads(done.stdout.splitlines()[-1])

    assert (first["code"], second["code"]) == (0, 0), done.stdout[-5_000:]
    assert first["reasons"] == second["reasons"] == {}
    # Spark makes the tables of the first run.
    assert (first["writes"], second["writes"]) == ([], ["analytics.daily"])
    days = {f"2026-11-0{1 + day}": range(day, 30, 3) for day in range(3)}
    assert first["models"]["daily"] == daily(days)
    orders = [[id_, f"2026-11-0{1 + id_ % (3 if id_ < 30 else 4)}"] for id_ in range(40)]
    later = {day: [id_ for id_, ds in orders if ds == day] for day in ("2026-11-03", "2026-11-04")}
    assert second["models"]["daily"] == daily(days | later)
    assert second["partitions"] == [f"ds=2026-11-0{day}" for day in range(1, 5)]
    recent = [row for row in orders if row[1] >= "2026-11-02"]
    assert [[row[0], row[3]] for row in second["models"]["recent_orders"]] == recent
    assert sum(row[1] for row in second["models"]["customers"]) == len(recent)
