"""The chart's pods as processes, with their commands and environments."""

from __future__ import annotations

import os
import subprocess
import sysconfig
import time
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
from tests.support.servers import free_port

_TIMEOUT_S = 60.0
_PROBES = ("startup", "liveness", "readiness")
(MINIMAL,) = (path for path in VALUES if path.stem == "minimal")


class Cluster:
    """Stands in for Kubernetes: resolves the environment of a container, and runs its command.

    Args:
        folder: The working directory of processes, which must leave nothing in it.
        database_url: The value of the database secret.
    """

    def __init__(self, folder: Path, database_url: str) -> None:
        self.documents = manifests(MINIMAL)
        self.port = free_port()
        self._folder = folder
        self._secrets = {
            ("windrow-database", "url"): database_url,
            # Nothing listens there: replicas work without Redis.
            ("windrow-redis", "url"): f"redis://127.0.0.1:{free_port()}/0",
        }

    def start(self, load: Workload) -> subprocess.Popen[str]:
        """Start the command of a pod on loopback, on the port of this cluster."""
        program, *arguments = load.container.get("command", entrypoint())
        return subprocess.Popen(
            [Path(sysconfig.get_path("scripts")) / program, *arguments],
            cwd=self._folder,
            env=self._environment(load.container)
            | {"WINDROW_HOST": "127.0.0.1", "WINDROW_PORT": str(self.port)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

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
    return Cluster(tmp_path, postgresql_url)


def test_a_release_migrates_its_database_and_then_serves(cluster: Cluster, tmp_path: Path) -> None:
    load = coordinator(cluster.documents)
    (migration,) = [load for load in workloads(cluster.documents) if load.kind == "Job"]

    # Without the migration, a replica refuses to serve.
    early = cluster.start(load)
    output, _ = early.communicate(timeout=_TIMEOUT_S)
    assert early.returncode != 0
    assert "windrow db upgrade" in output

    # Kubernetes may run two pods of a Job at once.
    jobs = [cluster.start(migration) for _ in range(2)]
    outputs = [job.communicate(timeout=_TIMEOUT_S)[0] for job in jobs]
    assert [job.returncode for job in jobs] == [0, 0], outputs

    replica = cluster.start(load)
    try:
        paths = [load.container[f"{name}Probe"]["httpGet"]["path"] for name in _PROBES]
        _wait_until_all_answer(cluster.port, paths, replica)
        replica.terminate()
        replica.communicate(timeout=load.spec["terminationGracePeriodSeconds"])
    finally:
        replica.kill()
        replica.communicate()
    # The root file system is read-only, so nothing may be written outside /tmp.
    assert list(tmp_path.iterdir()) == []


def _wait_until_all_answer(port: int, paths: list[str], process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + _TIMEOUT_S
    with httpx.Client(base_url=f"http://127.0.0.1:{port}") as http:
        while not all(_answers(http, path) for path in paths):
            assert process.poll() is None, process.communicate()[0]
            assert time.monotonic() < deadline, "it was not ready in time"
            time.sleep(0.1)


def _answers(http: httpx.Client, path: str) -> bool:
    try:
        return http.get(path).is_success
    except httpx.TransportError:
        return False
