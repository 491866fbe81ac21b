"""Commands of deployments, started on this machine as the deployment would start them."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import typer.main

from tests.deploy.charts import ROOT
from tests.support.servers.coordinators import PLAIN, wait_until
from windrow_cli.app import app
from windrow_service.settings import Settings

_SCRIPTS = Path(sys.executable).parent
_TIMEOUT_S = 120.0
_STEP = re.compile(r"(?<![\w-])windrow (?:token create|table|plan)\b[^`)\n]*")
# What commands other than the coordinator read.
OF_CLIENTS = {"WINDROW_URL", "WINDROW_TOKEN"}


def setting_names() -> set[str]:
    """Return the names of all variables that the coordinator reads."""
    names = set()
    for name, field in Settings.model_fields.items():
        section = getattr(field.annotation, "model_fields", None)
        inner = [name] if section is None else [f"{name}__{one}" for one in section]
        names |= {f"WINDROW_{one.upper()}" for one in inner}
    return names


def check_command(words: Sequence[str]) -> None:
    """Fail unless a command line of `windrow` exists, with its options."""
    assert words[0].rpartition("/")[2] == "windrow"
    command = typer.main.get_command(app)
    rest = list(words[1:])
    while (commands := getattr(command, "commands", {})) and rest and rest[0][0] != "-":
        assert rest[0] in commands, words
        command = commands[rest.pop(0)]
    options = {option for each in command.params for option in each.opts}
    assert set(rest) <= options, words


def command(words: Sequence[str]) -> list[str]:
    """Return a command line with the programs of this environment."""
    program = words[0].rpartition("/")[2]
    return [str(_SCRIPTS / program), *words[1:]]


def environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a process, with none of Windrow's variables but these."""
    others = {name: value for name, value in os.environ.items() if "WINDROW" not in name}
    return others | dict(variables)


def output(words: Sequence[str], variables: Mapping[str, str]) -> str:
    """Return what a command prints; fail unless it succeeds."""
    done = subprocess.run(
        command(words),
        env=environment(variables),
        capture_output=True,
        text=True,
        check=False,
        timeout=_TIMEOUT_S,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextmanager
def process(
    words: Sequence[str], variables: Mapping[str, str], log: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command in a block; end it as systemd and Docker do, which it must heed."""
    with log.open("wb") as out:
        started = subprocess.Popen(
            command(words), env=environment(variables), stdout=out, stderr=out, cwd=log.parent
        )
    try:
        yield started
    finally:
        started.terminate()
        try:
            started.wait(_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            started.kill()
            raise


@contextmanager
def coordinator(words: Sequence[str], variables: Mapping[str, str], log: Path) -> Iterator[str]:
    """Run a coordinator in a block until it is ready; yield its URL."""
    url = f"http://127.0.0.1:{variables['WINDROW_PORT']}"
    with (
        process(words, variables, log) as started,
        httpx.Client(base_url=url, verify=PLAIN) as http,
    ):

        def is_ready() -> bool:
            assert started.poll() is None, log.read_text()
            try:
                return http.get("/health/ready").is_success
            except httpx.TransportError:
                return False

        wait_until(is_ready)
        yield url


def write_events(folder: Path) -> None:
    """Write a table of two files."""
    for day in (1, 2):
        file = folder / f"ds=2026-11-0{day}" / "part-0.parquet"
        file.parent.mkdir(parents=True)
        pq.write_table(pa.table({"id": [day, 10 * day]}), file)


def steps(section: str) -> list[list[str]]:
    """Return the commands of a section of the page about deployments that lead to a first plan."""
    text = (ROOT / "docs" / "how-to" / "deploy.md").read_text()
    text = text.partition(f"## {section}\n")[2].partition("\n## ")[0]
    return [shlex.split(line) for line in _STEP.findall(text)]


def check_first_plan(
    section: str, url: str, settings: Mapping[str, str], folder: Path
) -> dict[str, str]:
    """Follow a section of the page to its first plan; return what its worker is told.

    Args:
        section: Title of the section.
        url: URL of its coordinator.
        settings: Settings of its coordinator, with which tokens are created.
        folder: Where the table is, instead of `/data/events`.
    """
    create, register, refresh, plan, create_for_worker = steps(section)
    write_events(folder)
    client = {"WINDROW_URL": url, "WINDROW_TOKEN": output(create, settings).strip()}
    output([str(folder) if word == "/data/events" else word for word in register], client)
    output(refresh, client)
    planned = output(plan, client)
    assert re.search(r"^files\s+2 of 2$", planned, re.MULTILINE), planned
    return client | {"WINDROW_TOKEN": output(create_for_worker, settings).strip()}
