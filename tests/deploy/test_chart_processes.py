"""The chart's pods as processes, with their commands and environments."""

from __future__ import annotations

import importlib.metadata
import os
import time
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.deploy.charts import (
    VALUES,
    Manifest,
    Workload,
    coordinator,
    manifests,
    of_kind,
    workloads,
)
from tests.deploy.images import entrypoint
from tests.support.processes.forks import TIMEOUT_S, Forked, fork_module
from tests.support.servers.coordinators import PLAIN, free_port

_PROBES = ("startup", "liveness", "readiness")
(MINIMAL,) = (path for path in VALUES if path.stem == "minimal")


@dataclass(frozen=True, slots=True)
class Pod:
    """The running container of a pod, and the file of its output."""

    process: Forked
    log: Path

    def ended(self, timeout_s: float = TIMEOUT_S) -> tuple[int, str]:
        """Wait until the process has ended; return its exit code and its output."""
        return self.process.wait(timeout_s), self.log.read_text()


class Cluster:
    """Stands in for Kubernetes: resolves the environment of a container, and runs its command.

    Args:
        folder: The working directory of processes, which must leave nothing in it.
        logs: The folder for their output.
        database_url: The value of the database secret.
    """

    def __init__(self, folder: Path, logs: Path, database_url: str) -> None:
        self.documents = manifests(MINIMAL)
        self.port = free_port()
        self._folder = folder
        self._logs = logs
        self._started = 0
        self._secrets = {
            ("windrow-database", "url"): database_url,
            # Nothing listens there: replicas work without Redis.
            ("windrow-redis", "url"): f"redis://127.0.0.1:{free_port()}/0",
        }

    def start(self, load: Workload) -> Pod:
        """Start the command of a pod on loopback, on the port of this cluster."""
        module, *arguments = _forkable(load.container.get("command", entrypoint()))
        self._started += 1
        log = self._logs / f"{self._started}.log"
        process = fork_module(
            module,
            *arguments,
            output=log,
            cwd=self._folder,
            environment=self._environment(load.container)
            | {"WINDROW_HOST": "127.0.0.1", "WINDROW_PORT": str(self.port)},
        )
        return Pod(process, log)

    def _environment(self, container: Manifest) -> dict[str, str]:
        environment = {name: text for name, text in os.environ.items() if "WINDROW" not in name}
        (config,) = of_kind("ConfigMap", self.documents)
        if "envFrom" in container:
            environment |= config["data"]
        for variable in container["env"]:
            secret = variable["valueFrom"]["secretKeyRef"]
            environment[variable["name"]] = self._secrets[secret["name"], secret["key"]]
        return environment


@pytest.fixture
def cluster(tmp_path: Path, postgresql_url: str) -> Cluster:
    folder, logs = tmp_path / "root", tmp_path / "logs"
    folder.mkdir()
    logs.mkdir()
    return Cluster(folder, logs, postgresql_url)


def test_a_release_migrates_its_database_and_then_serves(cluster: Cluster, tmp_path: Path) -> None:
    load = coordinator(cluster.documents)
    (migration,) = [load for load in workloads(cluster.documents) if load.kind == "Job"]

    # Without the migration, a replica refuses to serve.
    code, output = cluster.start(load).ended()
    assert code != 0
    assert "windrow db upgrade" in output

    # Kubernetes may run two pods of a Job at once.
    jobs = [cluster.start(migration) for _ in range(2)]
    outcomes = [job.ended() for job in jobs]
    assert [code for code, _ in outcomes] == [0, 0], outcomes

    replica = cluster.start(load)
    try:
        paths = [load.container[f"{name}Probe"]["httpGet"]["path"] for name in _PROBES]
        _wait_until_all_answer(cluster.port, paths, replica)
        replica.process.terminate()
        replica.ended(load.spec["terminationGracePeriodSeconds"])
    finally:
        replica.process.kill()
    # The root file system is read-only, so nothing may be written outside /tmp.
    assert list((tmp_path / "root").iterdir()) == []


def _forkable(command: list[str]) -> list[str]:
    """Return the module that a command runs, and its arguments: a fork has it imported already."""
    program, *arguments = command
    if program == "python":
        option, *arguments = arguments
        assert option == "-m", command
        return arguments
    (script,) = importlib.metadata.entry_points(group="console_scripts", name=program)
    return [script.module, *arguments]


def _wait_until_all_answer(port: int, paths: list[str], replica: Pod) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", verify=PLAIN) as http:
        while not all(_answers(http, path) for path in paths):
            assert replica.process.poll() is None, replica.log.read_text()
            assert time.monotonic() < deadline, "the replica was not ready in time"
            time.sleep(0.1)


def _answers(http: httpx.Client, path: str) -> bool:
    try:
        return http.get(path).is_success
    except httpx.TransportError:
        return False
