"""What people type first, in a real kernel: short answers, plain errors, and nothing on stderr."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes.environments import python_with, skipped_without
from tests.support.servers.coordinators import coordinator_process
from tests.support.tables import hive
from windrow_core.cards import MAX_LINE

PACKAGES = ("nbconvert==7.17.2", "nbclient==0.11.0", "nbformat==5.11.1", "ipykernel==7.4.0")
TESTS = Path(__file__).parents[1]
CELLS = TESTS / "fixtures" / "first_cells.txt"
# Not imported: only the environment of notebooks has what it needs.
PROGRAM = TESTS / "programs" / "notebook_cells.py"
_TIMEOUT_S = 600
# Cells whose error is their answer: the name of the error, and words of it.
REFUSED = {
    12: ("NotFoundError", "did you mean 'sales.events'?"),
    18: ("InvalidArgumentError", "'append'"),
    20: ("TaskFailedError", "refresh the table"),
}
# Answers that are texts, or none.
PLAIN = {10, 13, 14, 15}


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """The cells of the notebook, with their outputs."""
    folder = tmp_path_factory.mktemp("notebook")
    with skipped_without("Jupyter"):
        python = python_with(PACKAGES, ".venv-notebook", f".installed-{PACKAGES[0]}")
    location = hive.write_events(folder / "events")
    with coordinator_process(folder / "state", folder) as coordinator:
        environment = {
            **os.environ,
            "WINDROW_URL": coordinator.url,
            "EVENTS": str(location),
        }
        done = subprocess.run(
            [python, str(PROGRAM), str(CELLS), str(folder / "cells.ipynb")],
            env=environment,
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    cells: list[Any] = json.loads((folder / "cells.ipynb").read_text())["cells"]
    return cells


@pytest.mark.nightly
def test_cells_answer_in_short_lines_and_tables_and_errors_say_what_to_write(
    cells: list[Any],
) -> None:
    assert len(cells) == 20
    for number, cell in enumerate(cells, 1):
        outputs = {one["output_type"]: one for one in cell["outputs"]}
        text = f"cell {number}: {cell['outputs']}"
        assert ("error" in outputs) == (number in REFUSED), text
        if number in REFUSED:
            name, words = REFUSED[number]
            said = "".join(outputs["error"]["traceback"])
            assert name in said, text
            assert words in said, text
            assert len(outputs["error"]["traceback"]) <= 3, text
        elif "execute_result" in outputs:
            answer = outputs["execute_result"]["data"]
            assert len("".join(answer["text/plain"])) <= MAX_LINE, text
            assert "generator" not in "".join(answer["text/plain"]), text
            assert ("text/html" in answer) == (number not in PLAIN), text


@pytest.mark.nightly
def test_no_cell_prints_on_stderr_but_what_the_jvm_logs(cells: list[Any]) -> None:
    noise = {
        number: "".join(one["text"])
        for number, cell in enumerate(cells, 1)
        for one in cell["outputs"]
        if one["output_type"] == "stream" and one["name"] == "stderr"
    }

    # Spark greets with its log level and warns of the machine, and logs why its tasks failed.
    for number in (13, 20):
        noise.pop(number, None)
    assert {number: text for number, text in noise.items() if not re.fullmatch(r"\s*", text)} == {}
