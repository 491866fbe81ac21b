"""Requests per minute: limited for each caller over all replicas, except health checks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from anyio.from_thread import start_blocking_portal

import windrow
from tests.support.api.problems import problem_of
from tests.support.servers.coordinators import PLAIN, running
from tests.support.servers.redis import RedisProcess, redis_process
from windrow_calls.errors import BusyError
from windrow_service import administration
from windrow_service.settings import LimitSettings, Settings

LIMIT = 5


def settings(folder: Path, redis_url: str | None = None) -> Settings:
    return Settings.model_validate(
        {
            "state_dir": folder / "state",
            "allowed_locations": (str(folder),),
            "require_tokens": True,
            "redis_url": redis_url,
            "limits": LimitSettings(requests_per_minute=LIMIT),
        }
    )


def headers_of(settings: Settings, name: str) -> dict[str, str]:
    async def create() -> str:
        async with administration.open_tokens(settings) as tokens:
            return (await tokens.create(name, ["read"], None))[1]

    with start_blocking_portal() as portal:
        return {"Authorization": f"Bearer {portal.call(create)}"}


def statuses(url: str, headers: dict[str, str], count: int) -> list[int]:
    with httpx.Client(base_url=url, headers=headers, verify=PLAIN) as http:
        return [http.get("/config").status_code for _ in range(count)]


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisProcess]:
    with redis_process(tmp_path) as server:
        yield server


def test_a_caller_above_its_rate_is_told_when_to_retry(tmp_path: Path) -> None:
    limited = settings(tmp_path)
    with running(limited) as url:
        ana, bo = headers_of(limited, "ana"), headers_of(limited, "bo")
        again = headers_of(limited, "ana")

        assert statuses(url, ana, LIMIT + 1) == [200] * LIMIT + [429]

        # Another token of the same caller makes no difference; another caller does.
        refused = httpx.post(f"{url}/plans", headers=again, content=b"?", verify=PLAIN)
        problem_of(refused, 429, "too-many-requests")
        assert 1 <= int(refused.headers["Retry-After"]) <= 60
        assert statuses(url, bo, 1) == [200]
        assert statuses(url, {}, 1) == [401]
        for _ in range(2 * LIMIT):
            assert httpx.get(f"{url}/health/ready", headers=ana, verify=PLAIN).status_code == 200
        with (
            windrow.connect(url, token=ana["Authorization"].split()[1], attempts=1) as client,
            pytest.raises(BusyError, match="the limit of requests for one caller"),
        ):
            client.config()


def test_replicas_count_together_and_separately_while_redis_is_away(
    tmp_path: Path, redis: RedisProcess
) -> None:
    limited = settings(tmp_path, redis.url)
    with running(limited) as one, running(limited) as other:
        ana = headers_of(limited, "ana")

        assert statuses(one, ana, 3) == [200] * 3
        assert statuses(other, ana, 3) == [200, 200, 429]
        redis.stop()
        assert statuses(one, ana, LIMIT + 1) == [200] * LIMIT + [429]
        assert statuses(other, ana, 1) == [200]


def test_nobody_is_limited_by_default() -> None:
    assert Settings().limits.requests_per_minute == 0
