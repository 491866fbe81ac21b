"""The cache map in Redis, shared by all replicas.

| key | type | holds |
|---|---|---|
| `workers` | sorted set | ids of workers, by when they expire |
| `worker:{id}` | string | a worker, as JSON |
| `seen` | sorted set | ids of workers, by when they expire or have expired, for a day |
| `last:{id}` | string | a worker as it last was, for a day after it has expired |
| `tables:{session}` | hash | table id to the number of its files that the session's worker holds |
| `cached:{session}:{table id}` | hash | first byte of file keys to all such keys, ascending |

Every key has a prefix with the version of this layout, and expires with its worker. Changes use
optimistic locking: if two replicas change one worker at the same time, one of them tries again.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeAlias, TypeVar

import numpy as np

from windrow_core.models import Heartbeat, WorkerInfo
from windrow_service.cache_map.keys import changed, cut_shards, shards_of
from windrow_service.cache_map.server import RedisServer
from windrow_service.planner.caching.file_keys import Holding
from windrow_service.planner.splits import Hashes
from windrow_service.usecases.caches.errors import (
    CacheFullError,
    TooManyWorkersError,
    WorkerNotFoundError,
)
from windrow_service.usecases.caches.ports import (
    GONE_FOR,
    MAX_CACHED_FILES,
    MAX_GONE,
    MAX_WORKERS,
    CacheReport,
)

T = TypeVar("T")
# redis declares answers as text or bytes; here they are always bytes.
Redis: TypeAlias = Any
Pipeline: TypeAlias = Any

_PREFIX = "windrow:1:"
_WORKERS = f"{_PREFIX}workers"
_SEEN = f"{_PREFIX}seen"
_KEY_TYPE = np.dtype("<u8")
_INDEX_TTL = timedelta(hours=2)


class RedisCacheMap:
    """`Heartbeats` and `CacheMap` in Redis.

    Args:
        server: The Redis server.
        max_files: Most files that one worker may hold.
        max_workers: Most live workers; slightly more are possible if several join at once.
    """

    def __init__(
        self,
        server: RedisServer,
        *,
        max_files: int = MAX_CACHED_FILES,
        max_workers: int = MAX_WORKERS,
    ) -> None:
        self._server = server
        self._max_files = max_files
        self._max_workers = max_workers

    async def beat(self, worker_id: str, heartbeat: Heartbeat, now: datetime) -> WorkerInfo:
        ttl = timedelta(seconds=heartbeat.ttl_seconds)

        async def change(pipe: Pipeline) -> WorkerInfo:
            before = await _find(pipe, worker_id, now)
            keys: list[str] = []
            if before is not None:
                await pipe.watch(_tables(before.session))
                keys = _keys_of(before.session, await pipe.hkeys(_tables(before.session)))
            elif await pipe.zcount(_WORKERS, f"({now.timestamp()}", "+inf") >= self._max_workers:
                raise TooManyWorkersError(self._max_workers)
            worker = WorkerInfo(
                worker_id=worker_id,
                session=before.session if before else secrets.token_hex(8),
                expires_at=now + ttl,
                **heartbeat.model_dump(),
            )
            pipe.multi()
            pipe.zremrangebyscore(_WORKERS, "-inf", now.timestamp())
            pipe.zadd(_WORKERS, {worker_id: worker.expires_at.timestamp()})
            pipe.pexpire(_WORKERS, _INDEX_TTL)
            text = worker.model_dump_json()
            pipe.set(_worker(worker_id), text, px=ttl)
            pipe.set(_last(worker_id), text, px=ttl + GONE_FOR)
            pipe.zadd(_SEEN, {worker_id: worker.expires_at.timestamp()})
            pipe.zremrangebyscore(_SEEN, "-inf", (now - GONE_FOR).timestamp())
            pipe.pexpire(_SEEN, _INDEX_TTL + GONE_FOR)
            for key in keys:
                pipe.pexpire(key, ttl)
            return worker

        return await self._change(worker_id, change)

    async def live(self, now: datetime) -> Sequence[WorkerInfo]:
        return await self._server.ask(lambda redis: _live(redis, now))

    async def gone(self, now: datetime) -> Sequence[WorkerInfo]:
        async def read(redis: Redis) -> Sequence[WorkerInfo]:
            since = f"({(now - GONE_FOR).timestamp()}"
            latest = await redis.zrevrangebyscore(
                _SEEN, now.timestamp(), since, start=0, num=MAX_GONE
            )
            texts = await redis.mget([_last(one.decode()) for one in latest]) if latest else ()
            return [WorkerInfo.model_validate_json(one) for one in texts if one is not None]

        return await self._server.ask(read)

    async def forget(self, worker_id: str, now: datetime) -> None:
        async def change(pipe: Pipeline) -> None:
            worker = await _find(pipe, worker_id, now)
            if worker is None:
                raise WorkerNotFoundError(worker_id)
            await pipe.watch(_tables(worker.session))
            keys = _keys_of(worker.session, await pipe.hkeys(_tables(worker.session)))
            pipe.multi()
            pipe.zrem(_WORKERS, worker_id)
            pipe.zrem(_SEEN, worker_id)
            pipe.delete(_worker(worker_id), _last(worker_id), *keys)

        await self._change(worker_id, change)

    async def report(self, report: CacheReport, now: datetime) -> int:
        index, key = _tables(report.session), _cached(report.session, report.table_id)
        shards = shards_of(np.concatenate((report.added, report.removed)))

        async def change(pipe: Pipeline) -> int:
            worker = await _find(pipe, report.worker_id, now)
            if worker is None or worker.session != report.session:
                raise WorkerNotFoundError(report.worker_id)
            # Every report changes the index, so watching it detects all other reports.
            await pipe.watch(index)
            counts = {int(k): int(v) for k, v in (await pipe.hgetall(index)).items()}
            reuses = shards and not report.replace
            keys = _joined(await pipe.hmget(key, map(_field, shards)) if reuses else ())
            before = len(keys) if not report.replace else counts.get(report.table_id, 0)
            # Off the event loop, because there may be millions of keys.
            after, pieces = await asyncio.to_thread(_change_shards, keys, report, shards)
            counts[report.table_id] = counts.get(report.table_id, 0) - before + len(after)
            if sum(counts.values()) > self._max_files:
                raise CacheFullError(report.worker_id, sum(counts.values()), self._max_files)
            pipe.multi()
            if report.replace:
                pipe.delete(key)
            if full := {name: piece for name, piece in pieces.items() if piece}:
                pipe.hset(key, mapping=full)
            if empty := pieces.keys() - full.keys():
                pipe.hdel(key, *empty)
            pipe.hset(index, str(report.table_id), counts[report.table_id])
            for changed_key in (index, key):
                pipe.expire(changed_key, worker.ttl_seconds)
            return counts[report.table_id]

        return await self._change(report.worker_id, change)

    async def holdings(self, table_id: int, now: datetime) -> Sequence[Holding]:
        async def read(redis: Redis) -> Sequence[Holding]:
            workers = await _live(redis, now)
            if not workers:
                return ()
            async with redis.pipeline(transaction=False) as pipe:
                for worker in workers:
                    pipe.hgetall(_cached(worker.session, table_id))
                answers = await pipe.execute()
            return [
                Holding(
                    worker.host,
                    worker.capacity_bytes,
                    _joined(shards[name] for name in sorted(shards)),
                )
                for worker, shards in zip(workers, answers, strict=True)
            ]

        return await self._server.ask(read)

    async def ping(self) -> None:
        await self._server.ask(lambda redis: redis.ping())

    async def _change(self, worker_id: str, change: Callable[[Pipeline], Awaitable[T]]) -> T:
        """Apply a change to one worker; repeat it if another change came in between."""

        async def apply(redis: Redis) -> T:
            answer: T = await redis.transaction(
                change, _worker(worker_id), value_from_callable=True
            )
            return answer

        return await self._server.ask(apply)


async def _find(pipe: Pipeline, worker_id: str, now: datetime) -> WorkerInfo | None:
    text = await pipe.get(_worker(worker_id))
    worker = WorkerInfo.model_validate_json(text) if text is not None else None
    return worker if worker is not None and worker.expires_at > now else None


async def _live(redis: Redis, now: datetime) -> Sequence[WorkerInfo]:
    texts = await redis.sort(_WORKERS, by="nosort", get=[_worker("*")])
    workers = [WorkerInfo.model_validate_json(each) for each in texts if each is not None]
    alive = (worker for worker in workers if worker.expires_at > now)
    return sorted(alive, key=lambda worker: worker.worker_id)


def _change_shards(
    keys: Hashes, report: CacheReport, shards: Sequence[int]
) -> tuple[Hashes, dict[bytes, bytes]]:
    """Return what a worker holds after a report, in the shards that the report concerns."""
    after = changed(keys, report.added, report.removed)
    pieces = cut_shards(after, shards)
    encoded = (piece.astype(_KEY_TYPE, copy=False).tobytes() for piece in pieces)
    return after, dict(zip(map(_field, shards), encoded, strict=True))


def _joined(shards: Iterable[bytes | None]) -> Hashes:
    keys = np.frombuffer(b"".join(shard for shard in shards if shard is not None), _KEY_TYPE)
    return keys.astype(np.uint64, copy=False)


def _field(shard: int) -> bytes:
    return bytes([shard])


def _worker(worker_id: str) -> str:
    return f"{_PREFIX}worker:{worker_id}"


def _last(worker_id: str) -> str:
    return f"{_PREFIX}last:{worker_id}"


def _tables(session: str) -> str:
    return f"{_PREFIX}tables:{session}"


def _cached(session: str, table_id: int) -> str:
    return f"{_PREFIX}cached:{session}:{table_id}"


def _keys_of(session: str, table_ids: Iterable[bytes]) -> list[str]:
    return [_tables(session), *(_cached(session, int(table_id)) for table_id in table_ids)]
