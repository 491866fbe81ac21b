"""Measure when DuckDB sees new files of a large table through the coordinator's catalog.

    python benchmarks/engine_changes.py [--quick] [--json FILE] [--files N]

A table of 1,000,000 files on 300 days is published to a coordinator in a process of its own, and
described as an Iceberg table. Then 100 files of a new day are written and published, a few times over,
and DuckDB counts and sums their rows, by a part of the table that its name chooses and by a
condition, and counts all rows. The peer is DuckDB on as many files in manifests that PyIceberg has
written, as any catalog would give it: DuckDB 1.5.5 decodes each entry of a table for each query.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from common import ROOT, Result, arguments, console, times_table, write_json
from engine_plans import FILE_ROWS, TABLE, inventory, register
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestEntry,
    ManifestEntryStatus,
    write_manifest,
    write_manifest_list,
)
from pyiceberg.table import Table

import windrow
from windrow import Client
from windrow_calls.terminal.consoles import show
from windrow_core.cards import count_text, seconds_text

# The tests start the same servers and engines.
sys.path.insert(0, str(ROOT))
from tests.support.engines.environment import python_with_engines
from tests.support.servers.coordinators import coordinator_process

NAME = "engine_changes"
NEW_FILES = 100
PEER = "DuckDB on PyIceberg's manifests"
_PEER_ENTRIES = 50_000


def main() -> None:
    """Measure and report."""
    parser = arguments("Measure when DuckDB sees new files of a large table.")
    parser.add_argument("--files", type=int, help="number of files; 1,000,000 by default")
    options = parser.parse_args()
    files = options.files or (3_000 if options.quick else 1_000_000)
    options.data.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=options.data) as name:
        folder = Path(name)
        with coordinator_process(folder / "state", folder / "table") as process:
            with windrow.connect(process.url, timeout_s=300) as client:
                register(client, folder / "table", files)
                client.describe_for_engines(TABLE)
                runs = []
                for run in range(options.runs):
                    # A process that has read the whole table is busy with what is left of it.
                    with duckdb(process.url) as ask:
                        runs.append(_run(client, ask, folder, files, run))
            catalog = RestCatalog("w", uri=f"{process.url}/iceberg")
            peer = _written_by_pyiceberg(catalog.load_table(TABLE), folder / "peer", files)
            catalog.close()
            with duckdb(process.url) as ask:
                # It decodes the same whatever it is asked.
                sql = f"SELECT count(*) FROM iceberg_scan('{peer}')"
                peer_s = median(ask(sql)[0] for _ in range(options.runs))
    figures = {name: median(run[name] for run in runs) for name in runs[0]}
    new = count_text(round(figures["manifests"]), "new manifest")
    console.print(f"published in {seconds_text(figures['published_s'])}, with {new}", style="dim")
    results = [
        Result.in_seconds(case, "query after it", figures[case], PEER, peer_s)
        for case in _questions("")
    ]
    show(times_table(results))
    if options.json is not None:
        write_json(options.json, NAME, results, files=files, **figures)


def _questions(day: str) -> dict[str, str]:
    """Return queries of the catalog."""
    namespace, name = TABLE.split(".")
    part = f"{namespace}.\"{name}$day='{day}'\""
    return {
        "new rows, by a part's name": f"SELECT count(*), sum(id) FROM w.{part}",
        "new rows, by a condition": f"SELECT count(*), sum(id) FROM w.{TABLE} WHERE day = '{day}'",
        "all rows": f"SELECT count(*) FROM w.{TABLE}",
    }


def _run(client: Client, ask: Any, folder: Path, files: int, run: int) -> dict[str, float]:
    """Add files of a new day, and ask for them; return seconds, and the number of new manifests."""
    day, rows = f"new-{run}", NEW_FILES * FILE_ROWS
    added = _write(folder / "table", day, run * rows)
    manifests = _manifests(folder)
    since_s = time.perf_counter()
    client.publish_delta(TABLE, added=added)
    figures = {"published_s": time.perf_counter() - since_s}
    of_day = [rows, sum(range(run * rows, (run + 1) * rows))]
    answers = [of_day, of_day, [files * FILE_ROWS + (run + 1) * rows]]
    for (case, sql), answer in zip(_questions(day).items(), answers, strict=True):
        figures[case], rows_now = ask(sql)
        if rows_now != [answer]:
            raise SystemExit(f"{case}: {rows_now} instead of {answer}")
    figures["manifests"] = len(_manifests(folder) - manifests)
    return figures


def _manifests(folder: Path) -> set[str]:
    metadata = (folder / "state" / "engines").rglob("*.avro")
    return {path.name for path in metadata if not path.name.startswith(("snap-", "part-"))}


def _write(table: Path, day: str, first: int) -> pa.Table:
    """Write the files of a day, whose ids begin with `first`; return their inventory."""
    home = table / f"day={day}"
    home.mkdir()
    first_ids = first + np.arange(NEW_FILES) * FILE_ROWS
    paths = [home / f"part-{number:05}.parquet" for number in range(NEW_FILES)]
    for path, first_id in zip(paths, first_ids, strict=True):
        ids, codes = np.arange(first_id, first_id + FILE_ROWS), np.zeros(FILE_ROWS, np.int64)
        pq.write_table(pa.table({"id": ids, "code": codes}), path)
    stats = [path.stat() for path in paths]
    return inventory(
        [path.relative_to(table).as_posix() for path in paths],
        np.array([one.st_size for one in stats]),
        np.array([one.st_mtime_ns for one in stats]),
        first_ids,
        np.zeros(NEW_FILES, np.int64),
    )


def _written_by_pyiceberg(table: Table, folder: Path, files: int) -> Path:
    """Return metadata of as many files, whose manifests PyIceberg has written.

    One manifest is listed over and over, because PyIceberg takes minutes to write all.
    """
    snapshot, io = table.current_snapshot(), PyArrowFileIO()
    assert snapshot is not None
    folder.mkdir()
    (largest, *_) = sorted(snapshot.manifests(io), key=lambda one: -(one.existing_files_count or 0))
    entries = largest.fetch_manifest_entry(io)[: min(_PEER_ENTRIES, files)]
    with write_manifest(
        2, table.spec(), table.schema(), io.new_output(str(folder / "m.avro")), 1, "deflate"
    ) as writer:
        for entry in entries:
            writer.add(_as_written(entry.data_file))
    manifest = writer.to_manifest_file()
    with write_manifest_list(
        2, io.new_output(str(folder / "list.avro")), 1, None, 1, "deflate"
    ) as listing:
        listing.add_manifests([manifest] * max(1, files // len(entries)))
    metadata = json.loads(Path(table.metadata_location).read_text())
    metadata["snapshots"][-1]["manifest-list"] = str(folder / "list.avro")
    path = folder / "v1.metadata.json"
    path.write_text(json.dumps(metadata))
    return path


def _as_written(file: DataFile) -> ManifestEntry:
    """Return the entry of a file that has just been written, with all statistics that there are."""
    ids = list(file.null_value_counts)
    data_file = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=file.file_path,
        file_format=FileFormat.PARQUET,
        partition=file.partition,
        record_count=file.record_count,
        file_size_in_bytes=file.file_size_in_bytes,
        column_sizes=dict.fromkeys(ids, 100),
        value_counts=dict.fromkeys(ids, file.record_count),
        null_value_counts=file.null_value_counts,
        nan_value_counts={},
        lower_bounds=file.lower_bounds,
        upper_bounds=file.upper_bounds,
        split_offsets=[4],
    )
    return ManifestEntry.from_args(
        status=ManifestEntryStatus.ADDED, snapshot_id=1, data_file=data_file
    )


@contextmanager
def duckdb(url: str) -> Iterator[Any]:
    """Start DuckDB; yield a function from SQL to seconds and rows."""
    reader = str(Path(__file__).with_name("duckdb_reading.py"))
    command = [python_with_engines(), "-W", "ignore", reader, url]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        queries, answers = process.stdin, process.stdout
        assert queries is not None
        assert answers is not None

        def ask(sql: str) -> Any:
            print(json.dumps(sql), file=queries, flush=True)
            return json.loads(answers.readline())

        yield ask
        queries.close()


if __name__ == "__main__":
    main()
