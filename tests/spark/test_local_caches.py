"""In local mode on a host that is one of several cache workers, nothing waits for the others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.support.servers import embedded
from tests.support.spark.host_caches import cache_in, keys_in
from windrow.client import Client
from windrow_core.models import Heartbeat
from windrow_jobs.compact import compact
from windrow_jobs.warm import Warmth, warm
from windrow_tables.host_cache.cache import FileCache

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]

FILES = 24
OTHERS = ("10.255.255.1", "10.255.255.2")


@dataclass(frozen=True)
class Workers:
    """A cached table, and the cache of this host, one of three workers."""

    client: Client
    cache: FileCache
    steps: list[str]

    def warm(self, spark: SparkSession) -> Warmth:
        return warm(lambda: spark, self.client, "t", on_progress=self.steps.append)

    def here(self) -> int:
        """Return the number of files that belong in the cache of this host."""
        groups = self.client.plan("t", cached_splits="by_worker").groups.to_pylist()
        host = self.cache.folder.host
        return sum(len(group["splits"]) for group in groups if group["cached_on"] == host)


@pytest.fixture
def workers(spark: SparkSession, tmp_path: Path) -> Iterator[Workers]:
    location = tmp_path / "table"
    for number in range(FILES):
        folder = location / f"p={number % 2}"
        folder.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"id": [number]}), folder / f"{number}.parquet")
    # The name by which Spark offers the slots of this session.
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    host = str(jvm.org.apache.spark.util.Utils.localHostName())
    cache = cache_in(tmp_path / "cache", host=host)
    environment = spark.sparkContext.environment
    environment["WINDROW_CACHE_DIR"] = cache.folder.path
    try:
        with embedded.client(tmp_path / "state", allowed_locations=[str(location)]) as client:
            client.register_table("t", str(location))
            client.refresh("t")
            client.cache_table("t", "p >= 0")
            for worker in (host, *OTHERS):
                beat = Heartbeat(host=worker, capacity_bytes=2**26, used_bytes=0, ttl_seconds=600)
                client.beat(worker, beat)
            yield Workers(client, cache, [])
    finally:
        del environment["WINDROW_CACHE_DIR"]


def test_reads_cache_the_files_of_this_host_alone(spark: SparkSession, workers: Workers) -> None:
    here = workers.here()
    assert 0 < here < FILES

    for _ in range(2):
        rows = workers.client.read(spark, "t", cached_splits="by_worker", reader="grouped")
        assert sorted(row.id for row in rows.collect()) == list(range(FILES))

    assert len(keys_in(workers.cache)) == here
    counts = workers.cache.counts()
    assert (counts["misses"], counts["hits"]) == (here, here)
    assert counts["elsewhere"] == 2 * (FILES - here)


def test_the_warm_up_says_at_once_what_it_cannot_reach(
    spark: SparkSession, workers: Workers
) -> None:
    here = workers.here()

    warmth = workers.warm(spark)

    assert (warmth.fetched_files, warmth.elsewhere_files) == (here, FILES - here)
    assert warmth.failed_files == 0
    (reason,) = warmth.reasons
    assert "run the command on each of those hosts" in reason
    assert all(host in reason for host in OTHERS)
    assert not any("repeating" in step for step in workers.steps)
    assert workers.warm(spark).present_files == here


def test_a_cached_table_is_compacted(spark: SparkSession, workers: Workers) -> None:
    workers.warm(spark)

    compact(lambda: spark, workers.client, "t", worth_reads=10**9, min_files=2)

    rows = workers.client.read(spark, "t", cached_splits="by_worker")
    assert sorted((row.id, row.p) for row in rows.collect()) == [(n, n % 2) for n in range(FILES)]
    assert len(workers.client.plan("t").groups) < FILES
