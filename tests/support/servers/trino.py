"""A real Trino of one node on loopback, which reads the catalogs of coordinators."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.programs import on_trino
from tests.support.processes.environments import python_with, skipped_without
from tests.support.servers.coordinators import free_port
from tests.support.servers.maven import unpacked

# Maven Central has its archive, unlike that of 483.
RELEASE = "476"
_JAVA = 24
_CLIENT = ("trino==0.340.0",)
# Its first queries wait for it to find itself, and it does not think that it is lost when it is slow.
# With static catalogs, its scheduler would know only after the next poll, of which there is one in
# five seconds, that it has any: until then, `No nodes available to run query`.
_SETTINGS = """
coordinator=true
catalog.management=dynamic
node-scheduler.include-coordinator=true
http-server.http.port={port}
discovery.uri=http://127.0.0.1:{port}
query.max-memory=100MB
query.max-memory-per-node=100MB
memory.heap-headroom-per-node=100MB
query-manager.required-workers=1
failure-detector.enabled=false
discovery.max-age=1h
"""
_OPTIONS = (
    *("-Xmx900m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
    *("--enable-native-access=ALL-UNNAMED", "-Djdk.attach.allowAttachSelf=true"),
    *("-Dnode.environment=test", "-Dnode.id=one"),
    *("-Dnode.internal-address=127.0.0.1", "-Dnode.bind-ip=127.0.0.1"),
)
_START_TIMEOUT_S = 400.0
_TIMEOUT_S = 900.0


@dataclass(frozen=True, slots=True)
class Trino:
    """A running Trino.

    Attributes:
        port: Its port.
        python: An interpreter with its client.
    """

    port: int
    python: str

    def answers(self, statements: Sequence[str]) -> list[Any]:
        """Return the rows of each statement as sorted texts, or the error with its causes."""
        result = subprocess.run(
            [self.python, on_trino.__file__, str(self.port)],
            input=json.dumps(statements),
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
        assert result.returncode == 0, result.stderr
        answers: list[Any] = json.loads(result.stdout)
        return answers


@contextmanager
def trino_server(folder: Path, catalogs: Mapping[str, str], **environment: str) -> Iterator[Trino]:
    """Run Trino with its connector of Iceberg; the test is skipped where it cannot be had.

    Args:
        folder: A folder for its files.
        catalogs: The text of each file of its folder `etc/catalog`, by its name without the ending.
        **environment: More variables of its environment.
    """
    java = _java()
    with skipped_without("Trino's client"):
        python = python_with(_CLIENT, ".venv-trino", ".installed")
    home = unpacked(f"io.trino:trino-server:{RELEASE}:tar.gz")
    port = free_port()
    (folder / "catalog").mkdir(parents=True)
    for name, text in catalogs.items():
        (folder / "catalog" / f"{name}.properties").write_text(text)
    (folder / "plugin").mkdir()
    (folder / "plugin" / "iceberg").symlink_to(home / "plugin" / "iceberg")
    settings, log = folder / "config.properties", folder / "trino.log"
    settings.write_text(_SETTINGS.format(port=port))
    command = [
        *(str(java), *_OPTIONS, "-cp", f"{home}/lib/*", f"-Dconfig={settings}"),
        *(f"-Dnode.data-dir={folder}/data", f"-Dplugin.dir={folder}/plugin"),
        *(f"-Dcatalog.config-dir={folder}/catalog", "io.trino.server.TrinoServer"),
    ]
    with (
        log.open("wb") as output,
        subprocess.Popen(
            command, cwd=folder, stdout=output, stderr=output, env={**os.environ, **environment}
        ) as server,
    ):
        try:
            _wait(server, log)
            yield Trino(port, python)
        finally:
            server.kill()


def _wait(server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _START_TIMEOUT_S
    while "SERVER STARTED" not in (text := log.read_text(errors="replace")):
        assert server.poll() is None, text[-5000:]
        assert time.monotonic() < deadline, text[-5000:]
        time.sleep(0.2)


def _java() -> Path:
    """Return a Java that Trino runs on; the test is skipped without one."""
    usual = shutil.which("java")
    for java in [*Path("/usr/lib/jvm").glob("*/bin/java"), *([Path(usual)] if usual else [])]:
        release = java.resolve().parents[1] / "release"
        match = re.search(r'JAVA_VERSION="(\d+)', release.read_text()) if release.exists() else None
        if match is not None and int(match[1]) >= _JAVA:
            return java
    pytest.skip(f"Trino {RELEASE} needs Java {_JAVA} or newer, which is not here")
