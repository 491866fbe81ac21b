"""Packs that are made for a table in this process, without one of their own."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pyarrow as pa

import windrow
from windrow_core.models.packs import PackDescription
from windrow_tables.packs.making import PackingJob, make_packs

IDENTITY = ["path", "size_bytes", "mtime_ns", "etag", "row_count"]
_STREAM = "application/vnd.apache.arrow.stream"


def unpublished_pack(http: httpx.Client, table: str) -> dict[str, Any]:
    """Make a pack of a table's small files, which must be alike; return it as a call sends it."""
    answer = http.post(
        f"/tables/{table}/packing-plans", json={"min_files": 2}, headers={"Accept": _STREAM}
    )
    answer.raise_for_status()
    files = pa.ipc.open_stream(answer.content).read_all()
    plan = json.loads(files.schema.metadata[b"windrow:packing-plan"])
    job = PackingJob(
        location=plan["location"],
        folder=plan["folder"],
        home=plan["home"],
        partition=pa.schema(list(files.schema.field("partition").type)),
        min_sources=2,
    )
    ((pack,), left) = make_packs(job, files)
    assert not left
    rows = files.select(IDENTITY).take(pa.array(pack.sources)).to_pylist()
    return {
        "definition": plan["definition"],
        "path": pack.path,
        "digest": pack.digest,
        "size_bytes": pack.size_bytes,
        "row_count": pack.row_count,
        "sources": [
            row | {"digest": digest.hex()} for row, digest in zip(rows, pack.digests, strict=True)
        ],
    }


def pack_here(client: windrow.Client, table: str) -> int:
    """Pack a table's small files as `client.pack` does; return how many packs were published."""
    plan, files = client.packing_files(table, min_files=2)
    job = PackingJob(
        location=plan.location,
        folder=plan.folder,
        home=plan.home,
        partition=pa.schema(list(files.schema.field("partition").type)),
        min_sources=2,
    )
    packs, left = make_packs(job, files)
    assert not left, left
    for pack in packs:
        sources = files.select(IDENTITY).take(pa.array(pack.sources))
        description = PackDescription(
            definition=plan.definition,
            path=pack.path,
            digest=pack.digest,
            size_bytes=pack.size_bytes,
            row_count=pack.row_count,
        )
        digests = pa.array(pack.digests, pa.binary(32))
        client.publish_pack(table, description, sources.append_column("digest", digests))
    return len(packs)
