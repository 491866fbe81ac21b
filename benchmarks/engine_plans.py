"""Measure how PyIceberg plans scans of a large table: by the coordinator, compared with by itself.

    python benchmarks/engine_plans.py [--quick] [--json FILE] [--files N] [--iceberg]

A table of 1,000,000 files on 300 days is published to a coordinator in a process of its own, over
SQLite, and described as an Iceberg table. PyIceberg then plans scans of which one file, a day or
nothing is wanted, in a process of its own for each way: by `plan_files` with `scan-planning-mode`
`server` and `client`. Both ways must plan the same files. The first scan of a process is cold, the
median of the others warm. Loading the table comes before, and has a time of its own.

With `--iceberg`, what was described is registered as an Iceberg table with metadata of its own, and
planned by a coordinator that has just started: its very first plan reads the manifests.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any, TypeAlias

import httpx
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from common import ROOT, Result, arguments, console, times_table, write_json

import windrow
from windrow import Client
from windrow_calls.terminal.consoles import show
from windrow_core.cards import seconds_text
from windrow_core.sizes import size_text

# The tests start the same servers.
sys.path.insert(0, str(ROOT))
from tests.support.servers.coordinators import coordinator_process, peak_bytes

NAME = "engine_plans"
TABLE = "bench.files"
DAYS = 300
FILE_ROWS = 10
Numbers: TypeAlias = npt.NDArray[np.int64]
PEER = "PyIceberg by itself"
_LAYOUT = {"columns": [["id", "int64"], ["code", "int64"]], "ids": False, "old": False}
# Has no factor in common with the number of files.
_STEP = 7_919


def main() -> None:
    """Measure and report."""
    parser = arguments("Measure scans that a coordinator plans for PyIceberg.")
    parser.add_argument("--files", type=int, help="number of files; 1,000,000 by default")
    parser.add_argument("--iceberg", action="store_true", help="plan a registered Iceberg table")
    options = parser.parse_args()
    files = options.files or (3_000 if options.quick else 1_000_000)
    options.data.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=options.data) as name:
        folder, table = Path(name), TABLE
        with ExitStack() as processes:
            process = processes.enter_context(coordinator_process(folder / "state", folder))
            with windrow.connect(process.url, timeout_s=300) as client:
                register(client, folder / "table", files)
            began_s = time.perf_counter()
            with windrow.connect(process.url, timeout_s=300) as client:
                client.describe_for_engines(TABLE)
            described_s = time.perf_counter() - began_s
            if options.iceberg:
                table = register_described(process.url, folder / "table")
                process.kill()
                process = processes.enter_context(coordinator_process(folder / "state", folder))
            server, own = (
                _in_a_process(process.url, mode, table, files, options.runs)
                for mode in ("server", "client")
            )
            console.print(
                f"described in {seconds_text(described_s)}, loaded in {seconds_text(server['load_s'])}; "
                f"peak memory of the coordinator {size_text(peak_bytes(process))}, of PyIceberg "
                f"{size_text(server['peak_bytes'])} ({size_text(server['imported_bytes'])} before it "
                f"plans), by itself {size_text(own['peak_bytes'])}",
                style="dim",
            )
    results = []
    for case, times in server["seconds"].items():
        if server["files"][case] != own["files"][case]:
            raise SystemExit(
                f"{case}: {server['files'][case]} files, {own['files'][case]} by itself"
            )
        peers = own["seconds"][case]
        results += [
            Result.in_seconds(case, metric, of(times), PEER, of(peers))
            for metric, of in (("cold", _first), ("warm", _others))
        ]
    show(times_table(results))
    if options.json is not None:
        write_json(
            options.json,
            NAME,
            results,
            files=files,
            described_s=described_s,
            load_s=server["load_s"],
            imported_bytes=server["imported_bytes"],
            peak_bytes=server["peak_bytes"],
            own_peak_bytes=own["peak_bytes"],
        )


def _first(times: list[float]) -> float:
    return times[0]


def _others(times: list[float]) -> float:
    return median(times[1:])


def register(client: Client, folder: Path, files: int) -> None:
    """Register a table of files of ten ids each and one code, on 300 days, which do not exist."""
    folder.mkdir()
    client.register_table(
        TABLE,
        str(folder),
        columns={"id": "bigint", "code": "bigint"},
        partition_columns={"day": "string"},
    )
    client.publish(TABLE, generated(files))


def register_described(url: str, folder: Path) -> str:
    """Register the table as an Iceberg table, with the metadata that describes it; return its name."""
    name = f"{TABLE}_iceberg"
    path = f"{url}/iceberg/v1/namespaces/bench/tables/files"
    metadata = httpx.get(path, timeout=300).json()["metadata-location"]
    with windrow.connect(url, timeout_s=300) as client:
        client.register_table(name, str(folder), "iceberg", format_options={"metadata": metadata})
        client.refresh(name)
    return name


def generated(files: int) -> pa.Table:
    """Return the inventory of these files."""
    number = np.arange(files)
    day = np.char.zfill((number * DAYS // files).astype(str), 3)
    paths = np.char.add(np.char.add("day=", day), "/part-")
    paths = np.char.add(np.char.add(paths, np.char.zfill(number.astype(str), 8)), ".parquet")
    return inventory(
        paths.tolist(),
        16_384 + number * 7_919 % 40_000,
        1_700_000_000_000_000_000 + number,
        number * FILE_ROWS,
        number * _STEP % files,
    )


def inventory(
    paths: Sequence[str], size_bytes: Numbers, mtime_ns: Numbers, first_id: Numbers, code: Numbers
) -> pa.Table:
    """Return an inventory of files.

    Args:
        paths: Their paths.
        size_bytes: Their sizes.
        mtime_ns: When they were modified.
        first_id: The least of each file's ids, which are consecutive.
        code: The only code of each.
    """
    files = len(paths)
    bounds = {"id": (first_id, first_id + FILE_ROWS - 1), "code": (code, code)}
    none = pa.array(np.zeros(files, np.int64))
    stats = [
        pa.StructArray.from_arrays([*map(pa.array, ends), none], ["min", "max", "null_count"])
        for ends in bounds.values()
    ]
    layouts = pa.DictionaryArray.from_arrays(np.zeros(files, np.int32), [json.dumps(_LAYOUT)])
    return pa.table(
        {
            "path": pa.array(paths),
            "size_bytes": size_bytes,
            "mtime_ns": mtime_ns,
            "row_count": np.full(files, FILE_ROWS),
            "stats": pa.StructArray.from_arrays(stats, names=list(bounds)),
            "layout": layouts,
        }
    )


def _in_a_process(url: str, mode: str, table: str, files: int, runs: int) -> Any:
    middle = files // 2
    filters = {
        "one file, ids in order": f"id = {middle * 10 + 3}",
        "one file, codes in no order": f"code = {middle}",
        "one file of a day": f"day = '150' and code = {middle * _STEP % files}",
        "no file": "day = 'never'",
    }
    planner = str(Path(__file__).with_name("iceberg_planning.py"))
    command = [sys.executable, "-W", "ignore", planner, url, mode, table, str(runs)]
    result = subprocess.run(
        [*command, json.dumps(filters)], stdout=subprocess.PIPE, check=True, text=True
    )
    return json.loads(result.stdout)


if __name__ == "__main__":
    main()
