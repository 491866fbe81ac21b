"""Tasks on the hosts that their groups ask for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from windrow.spark.errors import SparkConnectError


@dataclass(frozen=True, slots=True, kw_only=True)
class Descriptor:
    """What the driver sends to one task.

    Attributes:
        content: What the task works on, as bytes.
        hosts: Where the task should run, best first; empty for anywhere.
    """

    content: bytes
    hosts: tuple[str, ...]


def require_classic(spark: SparkSession) -> None:
    """Make sure that a session is a classic one, with a JVM within reach.

    Raises:
        SparkConnectError: It has none.
    """
    if getattr(spark, "_jsparkSession", None) is None:
        raise SparkConnectError


def default_parallelism(spark: SparkSession) -> int:
    """Return how many tasks a session runs at the same time.

    Raises:
        SparkConnectError: The session does not tell.
    """
    require_classic(spark)
    return int(spark.sparkContext.defaultParallelism)


def placed(spark: SparkSession, descriptors: Sequence[Descriptor]) -> DataFrame:
    """Return one binary row per descriptor, each in a partition of its own on its hosts.

    Only the JVM's `SparkContext.makeRDD` lets a partition prefer hosts; rows made there, rather
    than in Python, need no Python worker besides the one that reads.

    Args:
        spark: A classic session.
        descriptors: At least one.
    """
    jvm: Any = spark.sparkContext._jvm
    pairs = jvm.java.util.ArrayList()
    sequences: dict[tuple[str, ...], Any] = {}
    for descriptor in descriptors:
        if descriptor.hosts not in sequences:
            names = jvm.java.util.ArrayList()
            for host in descriptor.hosts:
                names.add(host)
            sequences[descriptor.hosts] = jvm.PythonUtils.toSeq(names)
        pairs.add(jvm.scala.Tuple2(descriptor.content, sequences[descriptor.hosts]))
    rdd = spark.sparkContext._jsc.sc().makeRDD(
        jvm.PythonUtils.toSeq(pairs), jvm.scala.reflect.ClassTag.Any()
    )
    encoder = jvm.org.apache.spark.sql.Encoders.BINARY()
    return DataFrame(spark._jsparkSession.createDataset(rdd, encoder).toDF(), spark)
