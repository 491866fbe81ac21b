"""Packs that are made for a table in this process, without one of their own."""

from __future__ import annotations

import json
import os
import random
import struct
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import httpx
import pyarrow as pa
import pyarrow.parquet as pq

import windrow
from windrow_calls.errors import ProblemError
from windrow_core.files import seals
from windrow_core.models.packs import Pack, PackingPlan
from windrow_service.planner import packs as planner
from windrow_tables.executor.files import TICK_S
from windrow_tables.packs.making import LeftFile, make_packs
from windrow_tables.packs.packing import job_of, packing_run, published

_IDENTITY = ["path", "size_bytes", "mtime_ns", "etag", "row_count"]
_MARK = ("inode", "changed_ns")
_MARGIN_S = 2.1
_LONG_AGO_S = 1_700_000_000
_TAIL_BYTES = 8
_STREAM = "application/vnd.apache.arrow.stream"


def write_small_files(location: Path, count: int = 60, *, first: int = 0, rows: int = 40) -> None:
    """Write files of 7 partitions, which nobody has changed lately.

    Args:
        location: The table's folder.
        count: Number of files.
        first: Number of the first one; files of the same number are the same.
        rows: Rows of each, with ids of its own.
    """
    for at in range(first, first + count):
        numbers = random.Random(at)
        path = location / f"k={at % 7}" / f"{at}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        ids = range(at * rows, (at + 1) * rows)
        pq.write_table(pa.table({"id": list(ids), "x": [f"{numbers.random()}" for _ in ids]}), path)
        os.utime(path, (_LONG_AGO_S, _LONG_AGO_S))


def settle() -> None:
    """Wait until nobody can have changed a file within the same tick of its clock."""
    time.sleep(2 * TICK_S)


def unpublished_pack(http: httpx.Client, table: str, run: str = "") -> dict[str, Any]:
    """Make a pack of a table's small files, which must be alike; return it as a call sends it.

    Args:
        http: Client of the coordinator.
        table: The table.
        run: Id of a run that has begun; by default, one begins.
    """
    answer = http.post(
        f"/tables/{table}/packing-plans", json={"min_files": 2}, headers={"Accept": _STREAM}
    )
    answer.raise_for_status()
    files = pa.ipc.open_stream(answer.content).read_all()
    plan = json.loads(files.schema.metadata[b"windrow:packing-plan"])
    if not run:
        run = os.urandom(8).hex()
        body = {"snapshot_id": plan["snapshot_id"], "lease_seconds": 600}
        http.put(f"/tables/{table}/packing-runs/{run}", json=body).raise_for_status()
    job = job_of(PackingPlan.model_validate(plan), files, run, 2)
    settle()
    ((pack,), left) = make_packs(job, files)
    assert not left
    rows = files.select(_IDENTITY).take(pa.array(pack.sources)).to_pylist()
    return {
        "definition": plan["definition"],
        "path": pack.path,
        "digest": pack.digest,
        "size_bytes": pack.size_bytes,
        "row_count": pack.row_count,
        "sources": [
            row | {"digest": digest.hex()} | dict(zip(_MARK, mark or (None, None), strict=True))
            for row, digest, mark in zip(rows, pack.digests, pack.marks, strict=True)
        ],
    }


def pack_here(client: windrow.Client, *tables: str) -> int:
    """Pack the small files of tables as `client.pack` does; return how many packs were published."""
    refresh_settled(client, *tables)
    count = 0
    for table in tables:
        packs, left = published_now(client, table)
        assert not left, left
        count += len(packs)
    return count


def packs_for_few_files() -> AbstractContextManager[object]:
    """Let plans of coordinators in this process read from packs however few files are wanted."""
    return patch.multiple(planner, _FEWEST_WANTED=1, _MOST_DECODED=1_000_000)


def pack_some(client: windrow.Client, *tables: str) -> None:
    """Pack whatever files of tables can be packed."""
    refresh_settled(client, *tables)
    for table in tables:
        with suppress(ProblemError):
            published_now(client, table)


def publish_new_packs(client: windrow.Client, table: str) -> tuple[list[Pack], list[LeftFile]]:
    """Pack a table in this process; return its new packs, and the files that are in none."""
    refresh_settled(client, table)
    return published_now(client, table)


def refresh_settled(client: windrow.Client, *tables: str) -> None:
    """Refresh tables; a listing tells nothing of files that had changed just before it."""
    time.sleep(_MARGIN_S)
    for table in tables:
        client.refresh(table)


def published_now(client: windrow.Client, table: str) -> tuple[list[Pack], list[LeftFile]]:
    """Pack a table as it was refreshed; return its new packs, and the files that are in none."""
    plan, files = client.packing_files(table, min_files=2)
    with packing_run(client, table, plan) as run:
        packs, left = make_packs(job_of(plan, files, run, 2), files)
        return [published(client, table, plan, files, one) for one in packs], left


def forged(
    rows: pa.Table,
    size_bytes: int,
    *,
    group_rows: int = 20_000,
    edit: Callable[[bytes], bytes] = bytes,
    **options: Any,
) -> bytes:
    """Return a pack that nobody has compared with any files, with a seal that fits.

    Args:
        rows: Its rows.
        size_bytes: Its size; what the rows do not need lies between them and the footer.
        group_rows: Rows of each row group.
        edit: What happens to the footer before it gets its seal.
        **options: As `pyarrow.parquet.ParquetWriter` takes them.
    """
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, rows.schema, store_schema=False, **options) as writer:
        writer.write_table(rows, row_group_size=group_rows)
        writer.add_key_value_metadata({seals.KEY: seals.unsealed()})
    content = sink.getvalue().to_pybytes()
    end = len(content) - _TAIL_BYTES
    footer = content[end - int.from_bytes(content[end : end + 4], "little") : end]
    return with_footer(content[: end - len(footer)], edit(footer), size_bytes)


def hostile_footer(content: bytes) -> bytes:
    """Return a footer that has room for a seal, as Thrift after other content."""
    return content + seals.KEY + b"\x18\x60" + seals.unsealed()


def with_footer(body: bytes, footer: bytes, size_bytes: int) -> bytes:
    """Return a file of some size that ends with a footer, which gets its seal."""
    tail = seals.sealed(footer) + struct.pack("<I", len(footer)) + b"PAR1"
    assert len(body) + len(tail) <= size_bytes
    return body.ljust(size_bytes - len(tail), b"\0") + tail


def fresh_pack(client: windrow.Client, table: str) -> Path:
    """Withdraw all packs of a table, and return the path of a new one."""
    for one in client.list_packs(table):
        if one.state == "published":
            client.withdraw_pack(table, one.pack_id)
    ((pack,), _) = published_now(client, table)
    return Path(pack.path)
