"""One cluster with file caches, and one driver on it, for all tests of this folder.

By day, parts of it are tested without: where tasks run by test_split_packing.py, test_local_hosts.py
and test_grouped_reader.py, caches of hosts by test_cached_read.py and test_local_caches.py, killed
tasks and agents by tests/faults/test_worker_cache.py and test_worker_agent.py, and what a lost worker
takes with it by test_write_retries.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

import windrow
from tests.support.servers.coordinators import coordinator_process
from tests.support.servers.redis import redis_process
from tests.support.servers.slow_store import slow_store
from tests.support.spark.clusters import Caching, spark_cluster
from tests.support.spark.drivers import CachingCluster, driver_of


@pytest.fixture(scope="package")
def caching_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CachingCluster]:
    """A store, Redis, a coordinator, and a cluster of three hosts with a driver."""
    folder = tmp_path_factory.mktemp("cluster")
    for name in ("store/tables", "redis", "cluster", "state"):
        (folder / name).mkdir(parents=True)
    with (
        slow_store(folder / "store") as store,
        redis_process(folder / "redis") as redis,
        coordinator_process(
            folder / "state",
            folder,
            WINDROW_ALLOWED_LOCATIONS=json.dumps(
                ["s3://tables", str(tmp_path_factory.getbasetemp())]
            ),
            WINDROW_REDIS_URL=redis.url,
            **store.environment,
        ) as coordinator,
        windrow.connect(coordinator.url) as client,
        spark_cluster(
            folder / "cluster",
            environment=store.environment,
            caching=Caching(coordinator=coordinator.url),
        ) as cluster,
        driver_of(cluster, coordinator.url, folder / "driver.log") as driver,
    ):
        yield CachingCluster(store, redis, client, coordinator.url, cluster, driver)


@pytest.fixture
def place(caching_cluster: CachingCluster) -> CachingCluster:
    """The cluster, once all its hosts are alive."""
    caching_cluster.wait_for_hosts()
    return caching_cluster
