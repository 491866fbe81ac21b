"""A Spark standalone cluster on loopback: workers that can be killed, and their cache agents."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark

from tests.support.quick_spark import jvm_options
from windrow.client import Client
from windrow.models import CacheCounters

HOSTS = ("127.0.0.2", "127.0.0.3", "127.0.0.4")

_HOME = Path(pyspark.__file__).parent
_START_TIMEOUT_S = 90.0
_STOP_TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Caching:
    """The file caches of a cluster's hosts.

    Attributes:
        coordinator: URL that the agents report to.
        capacity: Of each host's cache, as `windrow worker run` takes it.
        ttl_seconds: When a host that died is forgotten.
    """

    coordinator: str
    capacity: str = "1GB"
    ttl_seconds: int = 3


class Host:
    """One host: a Spark worker of one core and, where it caches files, its agent.

    Args:
        name: Its address.
        folder: For its logs, its work and its cache.
        master: The cluster's `spark://` address.
        environment: Of its processes.
        caching: Its cache; none by default.
    """

    def __init__(
        self,
        name: str,
        folder: Path,
        master: str,
        environment: Mapping[str, str],
        caching: Caching | None,
    ) -> None:
        self.name = name
        self.cache_dir = folder / "cache"
        self._folder = folder
        self._master = master
        self._environment = dict(environment)
        self._caching = caching
        self._starts = 0
        self._processes: list[subprocess.Popen[bytes]] = []
        folder.mkdir()
        if caching is not None:
            self._environment["WINDROW_CACHE_DIR"] = str(self.cache_dir)

    def start(self) -> None:
        """Start its processes; `wait` tells when the master knows the worker."""
        self._starts += 1
        if self._caching is not None:
            self._processes.append(self._agent(self._caching))
        options = ("--cores", "1", "--memory", "600m", "--webui-port", "0", "--host", self.name)
        where = ("--work-dir", str(self._folder / "work"))
        command = ("org.apache.spark.deploy.worker.Worker", *options, *where, self._master)
        self._processes.append(_daemon(self._log, self.name, self._environment, *command))

    def wait(self) -> None:
        """Wait until the master knows the worker."""
        wait_for(self._log, "Successfully registered with master")

    def kill(self) -> None:
        """End the worker, its executors and its agent as a power cut would."""
        for process in self._processes:
            for pid in _session(process.pid):
                os.kill(pid, signal.SIGKILL)
            process.wait()
        self._processes.clear()

    def stop(self) -> None:
        """Ask its processes to end, and wait until they have."""
        for process in reversed(self._processes):
            process.terminate()
        for process in self._processes:
            process.wait(_STOP_TIMEOUT_S)
        self._processes.clear()

    @property
    def _log(self) -> Path:
        return self._folder / f"worker-{self._starts}.log"

    def _agent(self, caching: Caching) -> subprocess.Popen[bytes]:
        options = {
            "--cache-dir": str(self.cache_dir),
            "--capacity": caching.capacity,
            "--host": self.name,
            "--ttl": str(caching.ttl_seconds),
            "--url": caching.coordinator,
        }
        words = [word for option in options.items() for word in option]
        with (self._folder / f"agent-{self._starts}.log").open("wb") as output:
            return subprocess.Popen(
                [sys.executable, "-m", "windrow.cli", "worker", "run", *words],
                env=self._environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )


@dataclass(frozen=True, slots=True)
class Cluster:
    """A standalone cluster on loopback addresses.

    Attributes:
        master: Its `spark://` address.
        hosts: Those with a worker, by address.
        environment: What a driver needs in its environment.
    """

    master: str
    hosts: Mapping[str, Host]
    environment: Mapping[str, str]

    @property
    def conf(self) -> dict[str, str]:
        """Return what a driver sets to run one task at a time on each host, and where asked."""
        return {
            "spark.executor.memory": "512m",
            "spark.executor.cores": "1",
            "spark.executor.extraJavaOptions": jvm_options(),
            "spark.cores.max": str(len(self.hosts)),
            # Longer than the default, on machines that are busy; a plan that names a host which
            # has just died waits for it as long.
            "spark.locality.wait": "10s",
            # All executors are there before the first task is placed.
            "spark.scheduler.minRegisteredResourcesRatio": "1.0",
            "spark.scheduler.maxRegisteredResourcesWaitingTime": "60s",
        }


@contextmanager
def spark_cluster(
    folder: Path,
    hosts: Sequence[str] = HOSTS,
    *,
    environment: Mapping[str, str] | None = None,
    caching: Caching | None = None,
) -> Iterator[Cluster]:
    """Start a master and workers of one core each, and end all of them.

    Args:
        folder: For their logs and their work; there is nothing in it.
        hosts: Where workers run.
        environment: More for all processes, such as how a store is reached.
        caching: What makes each host keep a file cache.
    """
    environment = {
        **os.environ,
        "SPARK_HOME": str(_HOME),
        "SPARK_DAEMON_MEMORY": "256m",
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_DIRS": str(folder / "scratch"),
        **(environment or {}),
    }
    log = folder / "master.log"
    options = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
    master = _daemon(
        log, "127.0.0.1", environment, "org.apache.spark.deploy.master.Master", *options
    )
    with ExitStack() as stack:
        stack.callback(master.wait, _STOP_TIMEOUT_S)
        stack.callback(master.terminate)
        url = "spark://" + wait_for(log, "Starting Spark master at").split("spark://")[1].strip()
        started: dict[str, Host] = {}
        for name in hosts:
            started[name] = Host(name, folder / name, url, environment, caching)
            stack.callback(started[name].kill)
            started[name].start()
        for host in started.values():
            host.wait()
        yield Cluster(url, started, {**environment, "SPARK_LOCAL_IP": "127.0.0.1"})
        for host in started.values():
            host.stop()


def wait_for(log: Path, words: str) -> str:
    """Return the first line of a log with these words, once it is there."""
    deadline = time.monotonic() + _START_TIMEOUT_S
    while time.monotonic() < deadline:
        for line in log.read_text(errors="replace").splitlines():
            if words in line:
                return line
        time.sleep(0.1)
    raise AssertionError(f"{words!r} did not appear: {log.read_text(errors='replace')}")


def counters(client: Client) -> CacheCounters:
    """Return what all caches have done up to now, once their agents have told of it."""
    # A beat that is on its way may have been begun before.
    for _ in range(2):
        told = {worker.worker_id: worker.expires_at for worker in client.workers()}
        deadline = time.monotonic() + _START_TIMEOUT_S
        while any(told.get(one.worker_id) == one.expires_at for one in client.workers()):
            assert time.monotonic() < deadline, "an agent does not beat"
            time.sleep(0.1)
    each = [worker.counters.model_dump() for worker in client.workers()]
    return CacheCounters(**{name: sum(one[name] for one in each) for name in each[0]})


def _daemon(
    log: Path, host: str, environment: Mapping[str, str], *command: str
) -> subprocess.Popen[bytes]:
    with log.open("wb") as output:
        return subprocess.Popen(
            [str(_HOME / "bin" / "spark-class"), *command],
            env={**environment, "SPARK_LOCAL_IP": host},
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def _session(leader: int) -> list[int]:
    """Return the processes of a session: executors' Python workers have a group of their own."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == leader:
                found.append(int(folder.name))
    return found
