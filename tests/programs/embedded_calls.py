"""Calls of each kind to an embedded coordinator; the argument is a folder for their files."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import windrow

if __name__ == "__main__":
    root = Path(sys.argv[1])
    folder = root / "events" / "ds=2026-11-01"
    folder.mkdir(parents=True)
    pq.write_table(pa.table({"id": [1, 2]}), folder / "part-0.parquet")
    with windrow.embedded(root / "state") as client:
        client.register_table("sales.events", location=str(root / "events"))
        client.refresh("sales.events")
        plan = client.plan("sales.events", filter="id = 1", reuse=True)
        client.explain(plan.info.plan_id)
        client.scan("sales.events", max_staleness=0).to_table()
        client.cache_table("sales.events", filter="ds = '2026-11-01'")
        client.protect_table("sales.events")
        client.set_policy("sales.*", target_file_size="256MB")
        client.decide_maintenance()
        client.plan_compaction("sales.events")
        client.publish_delta("sales.events", added=[], removed=["ds=2026-11-01/part-0.parquet"])
