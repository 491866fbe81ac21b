"""A Spark driver in a separate process that reads and writes through a coordinator on command."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.servers.redis import RedisProcess
from tests.support.servers.slow_store import SlowStore
from tests.support.spark.clusters import Cluster
from windrow.client import Client

_TIMEOUT_S = 120.0


class Driver:
    """A running driver, which executes one call at a time."""

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        self._process = process
        self._log = log

    def begin(self, call: str, **arguments: Any) -> None:
        """Start a call."""
        assert self._process.stdin is not None
        print(json.dumps({"call": call, **arguments}), file=self._process.stdin, flush=True)

    def finish(self) -> Any:
        """Wait for the end of the started call, and return its answer."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, self._log.read_text()[-5_000:]
        return json.loads(line)

    def read(self, table: str, **options: Any) -> list[Any]:
        """Return the rows of a table, sorted."""
        self.begin("read", table=table, **options)
        rows: list[Any] = self.finish()
        return rows

    def wait_for_hosts(self, hosts: Sequence[str]) -> None:
        """Wait until executors run on exactly these hosts."""
        deadline = time.monotonic() + _TIMEOUT_S
        live_hosts: list[str] = []
        while live_hosts != sorted(["127.0.0.1", *hosts]):
            assert time.monotonic() < deadline, f"executors run on {live_hosts}"
            self.begin("hosts")
            live_hosts = self.finish()


@dataclass(frozen=True)
class CachingCluster:
    """A cluster with file caches, the services that its hosts use, and a driver on it.

    Attributes:
        store: The store that tables are read from.
        redis: The coordinator's Redis.
        client: A client of the coordinator.
        url: URL of the coordinator.
        cluster: The hosts.
        driver: The driver, with one executor on each host.
    """

    store: SlowStore
    redis: RedisProcess
    client: Client
    url: str
    cluster: Cluster
    driver: Driver

    def live_hosts(self) -> set[str]:
        """Return the hosts whose agents are alive to the coordinator."""
        return {worker.host for worker in self.client.workers()}

    def wait_for_hosts(self) -> None:
        """Wait until agents and executors run on all hosts."""
        deadline = time.monotonic() + _TIMEOUT_S
        while self.live_hosts() != set(self.cluster.hosts):
            assert time.monotonic() < deadline, f"agents run on {self.live_hosts()}"
            time.sleep(0.1)
        self.driver.wait_for_hosts(list(self.cluster.hosts))


@contextmanager
def driver_of(cluster: Cluster, coordinator: str, log: Path) -> Iterator[Driver]:
    """Start a driver with one task at a time on each host, and stop it at the end."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "tests.programs.driver",
                cluster.master,
                coordinator,
                json.dumps(cluster.conf),
            ],
            env=dict(cluster.environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=output,
            text=True,
        )
    with process:
        driver = Driver(process, log)
        try:
            driver.wait_for_hosts(list(cluster.hosts))
            yield driver
        finally:
            process.kill()
