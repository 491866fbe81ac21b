"""Servers for benchmarks: PostgreSQL, Redis and coordinators that share them."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from common import ROOT

from windrow_service import bootstrap
from windrow_service.settings import Settings

# The tests start the same servers.
sys.path.insert(0, str(ROOT))
from tests.support.servers.coordinators import CoordinatorProcess, coordinator_process
from tests.support.servers.databases import new_database, server_url
from tests.support.servers.redis import RedisProcess


class Deployment:
    """A PostgreSQL database and a Redis server, and replicas that use them.

    Attributes:
        folder: Folder that may hold tables.
        database_url: URL of the database.
        redis_url: URL of Redis.
    """

    def __init__(self, folder: Path, database_url: str, redis_url: str) -> None:
        self.folder = folder
        self.database_url = database_url
        self.redis_url = redis_url
        self._environment = {
            "WINDROW_DATABASE_URL": database_url,
            "WINDROW_REDIS_URL": redis_url,
            "WINDROW_LIMITS__MAX_PLAN_BYTES": str(64 * 2**30),
        }

    @contextmanager
    def replicas(self, count: int, **settings: str) -> Iterator[list[CoordinatorProcess]]:
        """Run fresh replicas with empty caches, and with further settings."""
        with ExitStack() as stack:
            yield [
                stack.enter_context(
                    coordinator_process(
                        self.folder / f"state{number}", self.folder, **self._environment, **settings
                    )
                )
                for number in range(count)
            ]

    def upgrade(self) -> None:
        """Upgrade the database to the newest revision."""
        bootstrap.upgrade(
            Settings.model_validate({"database_url": self._environment["WINDROW_DATABASE_URL"]})
        )


@contextmanager
def deployment() -> Iterator[Deployment]:
    """Run the servers until the end of the block."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        database_url = stack.enter_context(new_database(stack.enter_context(server_url())))
        redis = RedisProcess(folder)
        stack.callback(redis.stop)
        redis.start()
        servers = Deployment(folder, database_url, redis.url)
        servers.upgrade()
        yield servers
