"""Read tables, or pack one, in a process that does nothing else; for `packs.py`.

    python benchmarks/pack_reading.py URL READER RUNS TABLE...

prints for each table the CPU seconds of this process and the seconds of each read, the first of them
cold, and the answer; as JSON. READER `pack` packs the first table instead, in this process.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

import windrow

# The tests ask the same engines, and pack the same way.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.programs.other_engines import duckdb_reader, polars_rows

COLUMNS = ["month", "distance"]
SQL = "SELECT month, count(*), sum(distance) FROM w.{} GROUP BY month ORDER BY month"
Ask = Callable[[str], Sequence[Sequence[Any]]]


def main() -> None:
    """Read all tables, or pack one."""
    url, reader, runs, *tables = sys.argv[1:]
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    answer = (
        _packed(url, tables[0]) if reader == "pack" else _read(READERS[reader](url), runs, tables)
    )
    print(json.dumps({**answer, "peak_bytes": _peak_bytes()}))


def _read(ask: Ask, runs: str, tables: Sequence[str]) -> dict[str, Any]:
    figures: dict[str, Any] = {name: {"cpu_s": [], "wall_s": []} for name in tables}
    for _ in range(int(runs) + 1):
        for name in tables:
            cpu_s, began_s = time.process_time(), time.perf_counter()
            rows = ask(name)
            figures[name]["cpu_s"].append(time.process_time() - cpu_s)
            figures[name]["wall_s"].append(time.perf_counter() - began_s)
            figures[name]["rows"] = [[int(value) for value in row] for row in rows]
    return figures


def _packed(url: str, table: str) -> dict[str, Any]:
    from tests.support.tables.packs import pack_here

    with windrow.connect(url, timeout_s=300) as client:
        source_bytes = client.plan_packing(table, min_files=2).size_bytes
        cpu_s, began_s = time.process_time(), time.perf_counter()
        pack_here(client, table)
        cpu_s, wall_s = time.process_time() - cpu_s, time.perf_counter() - began_s
        packs = client.list_packs(table)
    return {
        "cpu_s": cpu_s,
        "wall_s": wall_s,
        "files": sum(pack.source_count for pack in packs),
        "source_bytes": source_bytes,
        "size_bytes": sum(pack.size_bytes for pack in packs),
    }


def _duckdb(url: str) -> Ask:
    ask = duckdb_reader(url, "")
    return lambda table: ask(SQL.format(table))


def _polars(url: str) -> Ask:
    catalog = _catalog(url)
    return lambda table: polars_rows(catalog, SQL.format(table))


def _pyiceberg(url: str) -> Ask:
    catalog = _catalog(url)
    return lambda table: _summed(
        catalog.load_table(table).scan(selected_fields=tuple(COLUMNS)).to_arrow()
    )


def _scan(url: str) -> Ask:
    client = windrow.connect(url, timeout_s=300)
    return lambda table: _summed(client.scan(table, columns=COLUMNS).to_table())


def _summed(rows: pa.Table) -> list[list[Any]]:
    sums = rows.group_by("month").aggregate([([], "count_all"), ("distance", "sum")])
    ordered = sums.select(["month", "count_all", "distance_sum"]).sort_by("month")
    return [list(row.values()) for row in ordered.to_pylist()]


def _catalog(url: str) -> Any:
    from pyiceberg.catalog.rest import RestCatalog

    return RestCatalog("w", uri=f"{url}/iceberg", **{"header.X-Windrow-Reader": "polars"})


READERS = {
    "DuckDB": _duckdb,
    "Polars": _polars,
    # In an environment that has it.
    "Polars (own planner)": _polars,
    "PyIceberg": _pyiceberg,
    "client.scan": _scan,
}


def _peak_bytes() -> int:
    # Unlike that of `getrusage`, it leaves out the process that started this one.
    (line,) = re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(line) * 1024


if __name__ == "__main__":
    main()
