"""Packs that are made for a table and not published yet."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pyarrow as pa

from windrow_tables.packs.making import PackingJob, make_packs

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
    names = ["path", "size_bytes", "mtime_ns", "etag", "row_count"]
    rows = files.select(names).take(pa.array(pack.sources)).to_pylist()
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
