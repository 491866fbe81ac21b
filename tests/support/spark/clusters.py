"""A Spark standalone cluster on loopback: workers that can be killed, and their cache agents."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pyspark

from tests.support.spark.quick_spark import jvm_options
from windrow.client import Client
from windrow_core.models import CacheCounters

HOSTS = ("127.0.0.2", "127.0.0.3", "127.0.0.4")

_HOME = Path(pyspark.__file__).parent
_START_TIMEOUT_S = 90.0
_STOP_TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Caching:
    """The file caches of a cluster's hosts.

    Attributes:
        coordinator: URL of the coordinator that the agents report to.
        capacity: Size of each host's cache, as given to `windrow worker run`.
        ttl_seconds: Seconds after which a dead host is forgotten.
    """

    coordinator: str
    capacity: str = "1GB"
    ttl_seconds: int = 3


class Host:
    """One host: a Spark worker with one core and, if it caches files, its agent.

    Args:
        name: Address of the host.
        folder: Folder for its logs, work files and cache.
        master: The cluster's `spark://` address.
        environment: Environment of its processes.
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
        """Start its processes; call `wait` to wait until the master knows the worker."""
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
        """Kill the worker, its executors and its agent, as a power cut would."""
        for process in self._processes:
            for pid in _session(process.pid):
                # A process may end by itself meanwhile.
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            process.wait()
        self._processes.clear()

    def stop(self) -> None:
        """Ask its processes to end, and wait for them."""
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
                [sys.executable, "-m", "windrow_cli", "worker", "run", *words],
                env=self._environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )


@dataclass(frozen=True, slots=True)
class Cluster:
    """A standalone cluster on loopback addresses.

    Attributes:
        master: The master's `spark://` address.
        hosts: Hosts with a worker, by address.
        environment: Environment for drivers.
    """

    master: str
    hosts: Mapping[str, Host]
    environment: Mapping[str, str]

    @property
    def conf(self) -> dict[str, str]:
        """Return the settings of a driver that runs one task at a time on each requested host."""
        return {
            "spark.executor.memory": "512m",
            "spark.executor.cores": "1",
            "spark.executor.extraJavaOptions": jvm_options(),
            "spark.cores.max": str(len(self.hosts)),
            # Longer than the default, for busy machines. Tasks wait this long for a host that has
            # just died.
            "spark.locality.wait": "10s",
            # Wait for all executors before the first task is scheduled.
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
    """Start a master and workers with one core each, and stop them at the end of the block.

    Args:
        folder: Empty folder for their logs and work files.
        hosts: Addresses of the workers.
        environment: Additional variables for all processes, such as access to a store.
        caching: File caches of all hosts; none by default.
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
    """Wait until a log contains these words, and return the first such line."""
    deadline = time.monotonic() + _START_TIMEOUT_S
    while time.monotonic() < deadline:
        for line in log.read_text(errors="replace").splitlines():
            if words in line:
                return line
        time.sleep(0.1)
    raise AssertionError(f"{words!r} did not appear: {log.read_text(errors='replace')}")


def counters(client: Client) -> CacheCounters:
    """Return up-to-date statistics of all caches, after waiting for new heartbeats."""
    # The first heartbeat may have started before this call, so wait for another.
    for _ in range(2):
        expiries = {worker.worker_id: worker.expires_at for worker in client.workers()}
        deadline = time.monotonic() + _START_TIMEOUT_S
        while any(expiries.get(one.worker_id) == one.expires_at for one in client.workers()):
            assert time.monotonic() < deadline, "an agent sends no heartbeats"
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
    """Return the processes of a session; Python workers of executors have separate groups."""
    processes = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == leader:
                processes.append(int(folder.name))
    return processes
