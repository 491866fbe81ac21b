"""docs/start/tutorial.md and its notebook, word for word except for the port."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

import httpx
import pytest
from pyspark.sql import SparkSession

import windrow.spark
from tests.support.servers.coordinators import PLAIN, free_port, wait_until

pytestmark = pytest.mark.spark

START = Path(__file__).parents[2] / "docs" / "start"
_TIMEOUT_S = 300
# Sizes and times differ from machine to machine.
_FIGURE = re.compile(r"\d+(?:\.\d+)? (?:s|KB|MB)\b")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in an empty folder, with the commands of this environment."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin")
    return tmp_path


# Its notebook does the same, and runs every day.
@pytest.mark.nightly
def test_the_tutorial_does_what_it_says(
    spark: SparkSession, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark.catalog.dropTempView("events")
    port = str(free_port())
    monkeypatch.setenv("WINDROW_PORT", port)
    monkeypatch.setenv("WINDROW_URL", f"http://127.0.0.1:{port}")
    text = (START / "tutorial.md").read_text().replace("127.0.0.1:8080", f"127.0.0.1:{port}")
    blocks = re.findall(r"^```(bash|python|text)\n(.*?)^```$", text, re.M | re.S)
    assert len(blocks) > 12
    names: dict[str, Any] = {}
    output = ""

    with ExitStack() as stack:
        for language, block in blocks:
            if language == "text":
                _compare(block, output)
            elif language == "python":
                output = _printed(block, names)
            elif block.startswith("windrow serve"):
                stack.enter_context(_running(block, port))
            else:
                output = _answered(block)

    names["client"].close()


def test_the_notebook_does_what_the_tutorial_does(spark: SparkSession, folder: Path) -> None:
    spark.catalog.dropTempView("events")
    notebook = json.loads((START / "tutorial.ipynb").read_text())
    cells = ["".join(c["source"]) for c in notebook["cells"] if c["cell_type"] == "code"]
    names: dict[str, Any] = {}

    outputs = [_printed(cell, names) for cell in cells]

    assert "40 of 400 files in 2 tasks\n" in outputs
    assert "40000\n10 of 10 files in 2 tasks\n" in outputs
    assert windrow.spark.recent_scans()


@contextmanager
def _running(command: str, port: str) -> Iterator[None]:
    """Run the coordinator as in a second terminal, until the end."""
    with subprocess.Popen(["bash", "-c", f"exec {command}"], stderr=subprocess.DEVNULL) as process:
        try:
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", verify=PLAIN) as http:
                wait_until(lambda: process.poll() is not None or _is_ready(http))
            yield
        finally:
            process.terminate()


def _is_ready(http: httpx.Client) -> bool:
    try:
        return http.get("/health/ready").is_success
    except httpx.TransportError:
        return False


def _printed(code: str, names: dict[str, Any]) -> str:
    with redirect_stdout(io.StringIO()) as output:
        exec(compile(code, "tutorial", "exec"), names)
    return output.getvalue()


def _answered(commands: str) -> str:
    done = subprocess.run(
        ["bash", "-ec", commands], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def _compare(shown: str, output: str) -> None:
    """Each line of a block stands in the output; figures may differ, and more may follow."""
    lines = [_comparable(line) for line in output.splitlines()]
    for line in shown.splitlines():
        assert any(each.startswith(_comparable(line)) for each in lines), f"{line!r} in {output}"


def _comparable(line: str) -> str:
    return " ".join(_FIGURE.sub("…", line).split())
