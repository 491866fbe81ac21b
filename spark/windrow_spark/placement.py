"""Run tasks on the hosts that their groups prefer."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession

from windrow_spark.errors import SparkConnectError
from windrow_spark.interpreter import is_local
from windrow_tables.groups.descriptors import Descriptor


def is_classic(spark: SparkSession) -> bool:
    """Return whether a session is a classic one, with a JVM within reach."""
    return getattr(spark, "_jsparkSession", None) is not None


def require_classic(spark: SparkSession) -> None:
    """Make sure that a session is a classic one, with a JVM within reach."""
    if not is_classic(spark):
        raise SparkConnectError


def default_parallelism(spark: SparkSession) -> int:
    """Return how many tasks a session runs at the same time.

    Raises:
        SparkConnectError: The session is one of Spark Connect.

    Example:
        windrow.spark.default_parallelism(spark)
    """
    require_classic(spark)
    return int(spark.sparkContext.defaultParallelism)


def hosts_to_prefer(spark: SparkSession, *, awaited: bool = False) -> frozenset[str] | None:
    """Return the hosts that tasks may prefer; None for all.

    In local mode there are none: if some tasks prefer this host and others do not, Spark waits
    before it starts the others here, and nothing ends that wait, so that the query never ends.

    On a cluster they are the hosts with executors. If a stage has tasks for one of them, those for
    other hosts would wait as long as `spark.locality.wait` for a slot that cannot come.

    While there are no executors, all hosts count if the application's executors are about to
    register, and on YARN, which is asked for containers on these hosts. Elsewhere Spark starts
    executors as it needs them (`spark.dynamicAllocation.enabled`) on hosts that no name decides,
    and none count: the first executors on some of the hosts would hold the tasks of all others.

    Args:
        spark: A classic session.
        awaited: Whether tasks wait, `spark.locality.wait` each, for the executors that Spark may
            start on their hosts, since they are of no use elsewhere.
    """
    context: Any = spark.sparkContext
    if is_local(context):
        return frozenset()
    if awaited and starts_executors(context):
        return None
    hosts = executor_hosts(spark)
    if not hosts and starts_executors(context) and not str(context.master).startswith("yarn"):
        return hosts
    return hosts or None


def executor_hosts(spark: SparkSession) -> frozenset[str]:
    """Return the hosts with executors at this moment, by the names that Spark uses.

    Args:
        spark: A classic session on a cluster.
    """
    context: Any = spark.sparkContext
    # Those of block managers, of which the driver has one as well.
    addresses = context._jsc.sc().getExecutorMemoryStatus().keys().mkString("\n").split("\n")
    hosts = [address.rpartition(":")[0] for address in addresses]
    drivers = context._conf.get("spark.driver.host")
    if drivers in hosts:
        hosts.remove(drivers)
    return frozenset(hosts)


def starts_executors(context: Any) -> bool:
    """Return whether Spark starts and stops executors as tasks need them."""
    setting: str = context._conf.get("spark.dynamicAllocation.enabled", "false")
    return setting.lower() == "true"


def placed(
    spark: SparkSession, descriptors: Sequence[Descriptor], *, awaited: bool = False
) -> DataFrame:
    """Return one binary row per descriptor, each in a partition of its own on its hosts.

    Args:
        spark: A classic session.
        descriptors: At least one.
        awaited: See `hosts_to_prefer`.
    """
    encoder = _used_of(spark.sparkContext._jvm).binary_encoder
    partitions = placed_bytes(spark, descriptors, awaited=awaited)
    rows = spark._jsparkSession.createDataset(partitions, encoder)
    return DataFrame(rows.toDF(), spark)


def placed_bytes(
    spark: SparkSession, descriptors: Sequence[Descriptor], *, awaited: bool = False
) -> Any:
    """Return the descriptors as the JVM's RDD, each in a partition of its own on its hosts.

    Only the JVM's `SparkContext.makeRDD` lets a partition prefer hosts; rows made there, rather
    than in Python, need no Python worker besides the one that reads.

    Args:
        spark: A classic session.
        descriptors: At least one.
        awaited: See `hosts_to_prefer`.
    """
    jvm = _used_of(spark.sparkContext._jvm)

    # One call for all values: a JVM call per descriptor would take longer than starting its task.
    def sent(values: Sequence[Any]) -> Any:
        return jvm.to_seq(jvm.unpickler().loads(pickle.dumps(values, protocol=4)))

    usable = hosts_to_prefer(spark, awaited=awaited)
    number_of = {hosts: number for number, hosts in enumerate({d.hosts: None for d in descriptors})}
    distinct = jvm.array_list()
    for hosts in number_of:
        distinct.add(sent([host for host in hosts if usable is None or host in usable]))
    # Scala's sequence is a function from positions to elements.
    numbers = sent([number_of[d.hosts] for d in descriptors])
    # Iterators, because Java cannot call these methods on the sequences of Scala 2.12.
    hosts_of_each = numbers.iterator().map(jvm.to_seq(distinct))
    pairs = sent([d.content for d in descriptors]).iterator().zip(hosts_of_each).toList()
    return spark.sparkContext._jsc.sc().makeRDD(pairs, jvm.any_tag)


class _Used(NamedTuple):
    """The JVM's functions and classes that this module uses."""

    to_seq: Any
    unpickler: Any
    array_list: Any
    any_tag: Any
    binary_encoder: Any


@lru_cache(maxsize=1)
def _used_of(jvm: Any) -> _Used:
    # Cached, as py4j calls the JVM for each part of a name.
    return _Used(
        to_seq=jvm.PythonUtils.toSeq,
        unpickler=jvm.net.razorvine.pickle.Unpickler,
        array_list=jvm.java.util.ArrayList,
        any_tag=jvm.scala.reflect.ClassTag.Any(),
        binary_encoder=jvm.org.apache.spark.sql.Encoders.BINARY(),
    )
