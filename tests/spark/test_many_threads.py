"""Queries of many threads at once are answered, and leave nothing behind in Python or the JVM."""

from __future__ import annotations

import gc
import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from py4j.finalizer import ThreadSafeFinalizer
from pyspark.sql import SparkSession

import windrow
from tests.support.queries.accelerations import accelerate
from tests.support.servers import embedded
from tests.support.tables import hive

pytestmark = pytest.mark.usefixtures("interpreted")

THREADS = 8
JVM_THREADS = "threads of the JVM"
# Longer than pools keep threads that have nothing to do.
IDLE_S = 90.0
# Enough to fill what keeps the latest 32 sessions and 100 scans, and then to see what else is kept.
WARM, COUNT = 120, 200
# Of days and ids; `{t}` is a table or path.
QUERIES = (
    "SELECT ds, count(*), count(DISTINCT name) FROM {t} GROUP BY ds",
    "SELECT /*+ MERGE(b) */ a.id, b.name FROM {t} a JOIN {t} b ON a.id = b.id WHERE day(a.ds) = 2",
    "SELECT /*+ BROADCAST(b) */ count(*) FROM {t} a JOIN (SELECT max(ds) ds FROM {t}) b USING (ds)",
    "SELECT id FROM {t} WHERE ds = (SELECT min(ds) FROM {t} WHERE id > 25) AND id < 30",
    "SELECT count(*) FROM {t} WHERE ds IN (SELECT ds FROM {t} WHERE id = 41)",
    "SELECT count(*) FROM {t} a WHERE NOT EXISTS (SELECT 1 FROM {t} b WHERE b.id = a.id + 1)",
    "SELECT max(r) FROM (SELECT row_number() OVER (PARTITION BY ds ORDER BY id) r FROM {t})",
    "SELECT id FROM {t} ORDER BY ds DESC, id LIMIT 5",
    "SELECT max(ds) FROM {t}",
    "SELECT count(*) FROM (SELECT id FROM {t} WHERE id < 9 UNION SELECT id FROM {t} WHERE id > 55)",
)
# Threads of Spark's own pools, which start one for each shuffle and keep it for a minute.
SPARKS_POOLS = re.compile(
    "shuffle-exchange|broadcast-exchange|subquery|dynamicpruning|ResultQueryStageExecution"
)


@pytest.fixture(scope="module")
def client(spark: SparkSession, folder: Path) -> Iterator[windrow.Client]:
    """A client whose table `sales.events` has 60 rows on 3 days."""
    with embedded.client(folder / "state", allowed_locations=[str(folder)]) as client:
        client.register_table("sales.events", str(hive.write_events(folder / "events")))
        client.refresh("sales.events")
        windrow.register(spark, client)
        yield client


def counts(spark: SparkSession) -> dict[str, int]:
    """Return how much of each kind Python and the JVM hold."""
    jvm: Any = spark.sparkContext._jvm
    gc.collect()
    jvm.java.lang.System.gc()
    loading = jvm.java.lang.management.ManagementFactory.getClassLoadingMXBean()
    texts = str(jvm.java.lang.Thread.getAllStackTraces().keySet().toString())
    names = re.findall(r"Thread\[(?:#\d+,)?([^,\]]*)", texts)
    return {
        "classes of the JVM": loading.getLoadedClassCount(),
        JVM_THREADS: sum(not SPARKS_POOLS.match(name) for name in names),
        "threads of Python": threading.active_count(),
        "files and sockets": len(os.listdir("/proc/self/fd")),
        "objects of the JVM that Python holds": len(ThreadSafeFinalizer.finalizers),
        "objects of Python that the JVM holds": len(
            spark.sparkContext._gateway.gateway_property.pool
        ),
    }


def run_at_once(work: Callable[[int], None], count: int) -> None:
    """Do some work many times in eight threads; fail if it does not end."""
    threads = ThreadPoolExecutor(THREADS)
    try:
        list(threads.map(work, range(count), timeout=900))
    finally:
        threads.shutdown(wait=False, cancel_futures=True)


@pytest.mark.nightly
def test_queries_of_eight_threads_are_answered_and_leave_nothing_behind(
    spark: SparkSession, client: windrow.Client, folder: Path
) -> None:
    path = f"parquet.`{folder}/events`"
    answers = [sorted(spark.sql(query.format(t=path)).collect()) for query in QUERIES]

    def work(number: int) -> None:
        at = number % len(QUERIES)
        session = spark.newSession() if number % 3 == 0 else spark
        table = "windrow.sales.events" if number % 2 else path
        assert sorted(session.sql(QUERIES[at].format(t=table)).collect()) == answers[at]

    with accelerate(spark, client) as acceleration:
        # First warm up: pools of threads and connections fill.
        run_at_once(work, WARM)
        before = counts(spark)
        run_at_once(work, COUNT)
        after = counts(spark)
        end_s = time.monotonic() + IDLE_S
        # A busy machine has more threads for a while, and a leak has them for good.
        while after[JVM_THREADS] - before[JVM_THREADS] > 16 and time.monotonic() < end_s:
            time.sleep(1)
            after = counts(spark)
        assert acceleration.reasons() == {}
    growth = {kind: count - before[kind] for kind, count in after.items()}
    assert growth.pop("classes of the JVM") <= 150
    objects = growth.pop("objects of the JVM that Python holds")
    # Every sixth query opens a table of the catalog in a session of its own, of which Python holds
    # five objects for each of the latest 64 tables.
    assert objects <= 16 + 5 * COUNT / 6
    assert {kind: by for kind, by in growth.items() if by > 16} == {}
