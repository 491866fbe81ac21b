"""Which hosts' caches a session can warm, and what to do about the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession

from windrow_jobs.warming import Warmed
from windrow_spark.interpreter import is_local
from windrow_spark.placement import executor_hosts, starts_executors
from windrow_tables.host_cache.opening import FOLDER_VARIABLE

_MAX_SHOWN_HOSTS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """The hosts on which a session runs tasks.

    Attributes:
        master: The session's master.
        is_local: Whether tasks run in the driver's own process.
        is_elastic: Whether Spark may yet start executors on other hosts.
        hosts: Hosts with executors at this moment, by the names that Spark uses; none if local.
    """

    master: str
    is_local: bool
    is_elastic: bool
    hosts: frozenset[str]

    def may_run_on(self, host: str) -> bool:
        """Return whether another attempt may run a task on a host."""
        return not self.is_local and (self.is_elastic or host in self.hosts)

    def reasons(self, away: Mapping[str, Sequence[Warmed]]) -> list[str]:
        """Return why tasks did not run on their hosts, and what to do, each reason once.

        Args:
            away: The outcomes of tasks that could not use the cache of their host, by that host.
        """
        others: set[str] = set()
        absent: set[str] = set()
        actual: set[str] = set()
        for host, outcomes in away.items():
            for one in outcomes:
                if one.actual is None or host in self.hosts:
                    # The executor has no cache, or its host was busy.
                    others.add(str(one.away))
                else:
                    absent.add(host)
                    actual.add(one.actual)
        if self.is_local and away:
            return [self._local_remedy(sorted(away)), *sorted(others)]
        return [*([_remedy(sorted(absent), sorted(actual))] if absent else []), *sorted(others)]

    def _local_remedy(self, absent: Sequence[str]) -> str:
        return (
            f"this session (master {self.master}) runs tasks on this host alone, and the files "
            f"belong in the caches of {_listed(absent)}: run the command on each of those hosts, "
            f"with {FOLDER_VARIABLE} naming the folder of its agent, or with the master of a "
            "cluster that has executors on them"
        )


def _remedy(absent: Sequence[str], actual: Sequence[str]) -> str:
    return (
        f"no executor runs on {_listed(absent)}, and only an executor of a host can fill its "
        f"cache: start executors there (these tasks ran on {_listed(actual)}), or give `windrow "
        "worker run` the name that Spark uses for the host (`--host`)"
    )


def reach_of(spark: SparkSession) -> Reach:
    """Return the hosts on which a classic session runs tasks at this moment."""
    context = spark.sparkContext
    local = is_local(context)
    return Reach(
        master=str(context.master),
        is_local=local,
        is_elastic=not local and starts_executors(context),
        hosts=frozenset() if local else executor_hosts(spark),
    )


def _listed(hosts: Sequence[str]) -> str:
    text = ", ".join(hosts[:_MAX_SHOWN_HOSTS])
    more = len(hosts) - _MAX_SHOWN_HOSTS
    return f"{text} and {more:,} more" if more > 0 else text
