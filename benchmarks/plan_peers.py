"""Measure how fast PyIceberg and Spark, the peers of `plan_scale.py`, plan an inventory's files.

    python benchmarks/plan_peers.py [--quick] [--json FILE] [--runs N]

An inventory is an Arrow table with the planner's columns `path`, `size_bytes` and `bucket`; other
columns are ignored. `write_files` writes its files: each is a Parquet file of exactly that size,
with one row at the start, a footer at the end and a hole in between. Both peers pack up to
`SPLIT_SIZE`, and both get one untimed round to warm up.
"""

from __future__ import annotations

import io
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from common import arguments, console, write_json
from rich import box
from rich.table import Table as RichTable

from windrow_calls.terminal.consoles import show
from windrow_calls.terminal.java import require_java
from windrow_core.cards import seconds_text
from windrow_demo.local_session import local_session
from windrow_demo.measuring import timed

if TYPE_CHECKING:
    from pyiceberg.table import FileScanTask, Table
    from pyspark.sql import SparkSession

NAME = "plan_peers"
PYICEBERG, SPARK = "pyiceberg", "spark"
KIB, MIB = 2**10, 2**20
SPLIT_SIZE = 64 * MIB
# A Parquet file with our two columns needs about half of this.
MIN_SIZE_BYTES = KIB
# Defaults of Iceberg's scan planning.
_ICEBERG_OPEN_COST, _ICEBERG_LOOKBACK = 4 * MIB, 10
_SPARK_SPLIT_SIZE = "spark.sql.files.maxPartitionBytes"
_FILES_PER_FOLDER = 1_000


class OtherFilesError(Exception):
    """A peer planned files that differ from the inventory, so its figures are meaningless."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerPlan:
    """A peer's plan of an inventory, with its times.

    Attributes:
        peer: Name of the peer.
        file_count: Number of planned files.
        size_bytes: Their size.
        group_count: Number of groups.
        plan_s: Median seconds for the whole planning.
        pack_s: Median seconds of the part from known files to groups.
    """

    peer: str
    file_count: int
    size_bytes: int
    group_count: int
    plan_s: float
    pack_s: float

    @property
    def files_per_s(self) -> float:
        """Files planned per second."""
        return self.file_count / self.plan_s


def write_files(inventory: pa.Table, folder: Path) -> None:
    """Make a real Parquet file for each row of an inventory.

    The columns are `id` and `bucket`; a hole before the footer brings each file to its size and
    takes no room on disk.

    Args:
        inventory: A table with `path`, `size_bytes` and `bucket`.
        folder: Folder that the paths are relative to.
    """
    paths = [folder / path for path in inventory["path"].to_pylist()]
    sizes, buckets = inventory["size_bytes"].to_pylist(), inventory["bucket"].to_pylist()
    if min(sizes, default=MIN_SIZE_BYTES) < MIN_SIZE_BYTES:
        raise ValueError(f"a file of {min(sizes)} bytes: give at least {MIN_SIZE_BYTES:,}")
    for parent in {path.parent for path in paths}:
        parent.mkdir(parents=True, exist_ok=True)
    parts = {bucket: _front_and_footer(bucket) for bucket in set(buckets)}
    for path, size, bucket in zip(paths, sizes, buckets, strict=True):
        front, footer = parts[bucket]
        with path.open("wb", buffering=0) as file:
            file.write(front)
            file.seek(size - len(footer))
            file.write(footer)


def pyiceberg_plan(inventory: pa.Table, folder: Path, *, runs: int = 3) -> PeerPlan:
    """Plan an inventory with PyIceberg.

    The table is in a SQLite catalog, partitioned by `bucket` if there are buckets. First,
    `Table.add_files` reads the footer of every file into one manifest, which is not timed. The
    timed part is `plan_files`, which decodes the manifest, and PyIceberg's bin packing per bucket
    with the target, look-back, weight and order of Iceberg's own planning. PyIceberg does not cut
    files.

    Args:
        inventory: A table with `path`, `size_bytes` and `bucket`.
        folder: Folder that `write_files` wrote to.
        runs: Number of timed runs.
    """

    def scan() -> list[FileScanTask]:
        return list(table.scan().plan_files())

    def timed_run() -> tuple[float, float, int]:
        # Objects of one run are freed before the next one starts its clock.
        tasks, list_s = timed(scan)
        groups, pack_s = timed(partial(_pack, tasks))
        return list_s, pack_s, len(groups)

    with _iceberg_table(inventory, folder) as table:
        _require_same_files(_pack(scan()), inventory, folder)
        return _peer_plan(PYICEBERG, inventory, [timed_run() for _ in range(runs)])


def spark_plan(
    spark: SparkSession, inventory: pa.Table, folder: Path, *, runs: int = 3
) -> PeerPlan:
    """Plan the read of an inventory's files with Spark's own Parquet source.

    The files are listed, and the schema is given, before the clock starts. Each run uses a new
    DataFrame over that listing. The timed part is its analysis, optimisation and physical plan,
    and then the scan's RDD, for which Spark cuts, sorts and packs the listed files (`pack_s`). No
    task runs and no code is generated. Spark ignores buckets and uses its default open cost.

    Args:
        spark: A session of this process.
        inventory: A table with `path`, `size_bytes` and `bucket`.
        folder: Folder that `write_files` wrote to, which holds nothing else.
        runs: Number of timed runs.
    """

    def physical_plan() -> Any:
        return listed.select("*")._jdf.queryExecution().executedPlan()

    def partitions(scan: Any) -> Any:
        return scan.inputRDDs().head().partitions()

    def timed_run() -> tuple[float, float, int]:
        plan, query_s = timed(physical_plan)
        packed, pack_s = timed(partial(partitions, _only_leaf(plan)))
        return query_s, pack_s, len(packed)

    with _conf(spark, _SPARK_SPLIT_SIZE, str(SPLIT_SIZE)):
        listed = spark.read.schema("id bigint, bucket int").parquet(str(folder))
        scan = _only_leaf(physical_plan())
        pieces = sum(len(partition.files()) for partition in partitions(scan))
        counts = [scan.metrics().apply(name).value() for name in ("numFiles", "filesSize")]
        # A large file is cut into several pieces.
        if counts != [inventory.num_rows, _total_bytes(inventory)] or pieces < counts[0]:
            raise OtherFilesError(f"Spark planned {counts}, {pieces:,} pieces: {_given(inventory)}")
        return _peer_plan(SPARK, inventory, [timed_run() for _ in range(runs)])


def main() -> None:
    """Measure both peers, print a table, and write the JSON if asked to."""
    options = arguments("Time how PyIceberg and Spark plan.").parse_args()
    require_java()
    runs = 1 if options.quick else options.runs
    # Peers, files, buckets.
    cases: tuple[tuple[tuple[str, ...], int, int], ...] = (
        (((PYICEBERG, SPARK), 1_000, 64),)
        if options.quick
        else (
            ((PYICEBERG, SPARK), 10_000, 1),
            ((PYICEBERG,), 10_000, 64),
            ((SPARK,), 50_000, 1),
            ((PYICEBERG,), 100_000, 1),
            ((PYICEBERG,), 100_000, 64),
        )
    )
    options.data.mkdir(parents=True, exist_ok=True)
    plans: list[tuple[int, PeerPlan]] = []
    with (
        tempfile.TemporaryDirectory(dir=options.data) as work,
        local_session("windrow plan peers", Path(work, "spark.log")) as spark,
    ):
        for peers, file_count, bucket_count in cases:
            console.print(f"{file_count:,} files, {bucket_count} buckets", style="dim")
            inventory = _generated(file_count, bucket_count)
            with tempfile.TemporaryDirectory(dir=work) as folder:
                write_files(inventory, Path(folder))
                if PYICEBERG in peers:
                    plan = pyiceberg_plan(inventory, Path(folder), runs=runs)
                    plans.append((bucket_count, plan))
                if SPARK in peers:
                    plan = spark_plan(spark, inventory, Path(folder), runs=runs)
                    plans.append((bucket_count, plan))
    show(_table(plans))
    if options.json is not None:
        rows = [{**asdict(plan), "bucket_count": buckets} for buckets, plan in plans]
        write_json(options.json, NAME, [], pyiceberg=version("pyiceberg"), runs=runs, peers=rows)


def _front_and_footer(bucket: int | None) -> tuple[bytes, bytes]:
    columns = {"id": pa.array([1], pa.int64()), "bucket": pa.array([bucket], pa.int32())}
    whole = io.BytesIO()
    pq.write_table(pa.table(columns), whole, compression="none", store_schema=False)
    content = whole.getvalue()
    # A Parquet file ends with its metadata, the length of it in four bytes, and "PAR1".
    footer_bytes = int.from_bytes(content[-8:-4], "little") + 8
    return content[:-footer_bytes], content[-footer_bytes:]


@contextmanager
def _iceberg_table(inventory: pa.Table, folder: Path) -> Iterator[Table]:
    from pyiceberg.catalog.sql import SqlCatalog
    from pyiceberg.partitioning import PartitionField, PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.transforms import IdentityTransform
    from pyiceberg.types import IntegerType, LongType, NestedField

    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "bucket", IntegerType()))
    by_bucket = PartitionField(2, 1000, IdentityTransform(), "bucket")
    has_buckets = inventory["bucket"].null_count < inventory.num_rows
    with (
        tempfile.TemporaryDirectory() as state,
        SqlCatalog(NAME, uri=f"sqlite:///{state}/catalog.db", warehouse=state) as catalog,
    ):
        catalog.create_namespace("bench")
        spec = PartitionSpec(by_bucket) if has_buckets else PartitionSpec()
        table = catalog.create_table("bench.files", schema, partition_spec=spec)
        table.add_files(list(_size_by_path(inventory, folder)), check_duplicate_files=False)
        yield table


def _pack(tasks: list[FileScanTask]) -> list[list[FileScanTask]]:
    """Pack the files of each partition as Iceberg does, with look-back 10 and largest bin first."""
    from pyiceberg.utils.bin_packing import PackingIterator

    by_partition: dict[object, list[FileScanTask]] = defaultdict(list)
    for task in tasks:
        # Not keyed by the Record: its hash goes through its text, which would slow the peer down.
        partition = task.file.partition
        by_partition[partition[0] if len(partition) else None].append(task)
    return [
        group
        for same in by_partition.values()
        for group in PackingIterator(same, SPLIT_SIZE, _ICEBERG_LOOKBACK, _weight, True)
    ]


def _weight(task: FileScanTask) -> int:
    return max(task.file.file_size_in_bytes, _ICEBERG_OPEN_COST)


def _require_same_files(
    groups: list[list[FileScanTask]], inventory: pa.Table, folder: Path
) -> None:
    files = [task.file for group in groups for task in group]
    size_by_path = {file.file_path: file.file_size_in_bytes for file in files}
    if size_by_path != _size_by_path(inventory, folder) or len(files) != inventory.num_rows:
        total = sum(file.file_size_in_bytes for file in files)
        raise OtherFilesError(
            f"PyIceberg planned {len(files):,} files, {total:,} bytes: {_given(inventory)}"
        )


def _only_leaf(plan: Any) -> Any:
    """Return the scan at the bottom of a physical plan of one table."""
    return plan.collectLeaves().head()


@contextmanager
def _conf(spark: SparkSession, key: str, value: str) -> Iterator[None]:
    before = spark.conf.get(key)
    spark.conf.set(key, value)
    try:
        yield
    finally:
        spark.conf.set(key, before)


def _size_by_path(inventory: pa.Table, folder: Path) -> dict[str, int]:
    paths = pc.binary_join_element_wise(str(folder), inventory["path"], "/").to_pylist()
    return dict(zip(paths, inventory["size_bytes"].to_pylist(), strict=True))


def _total_bytes(inventory: pa.Table) -> int:
    return int(pc.sum(inventory["size_bytes"]).as_py())


def _given(inventory: pa.Table) -> str:
    return f"the inventory has {inventory.num_rows:,} files, {_total_bytes(inventory):,} bytes"


def _peer_plan(
    peer: str, inventory: pa.Table, timed_runs: list[tuple[float, float, int]]
) -> PeerPlan:
    """Combine runs of (seconds to find the files, seconds to pack them, number of groups)."""
    return PeerPlan(
        peer=peer,
        file_count=inventory.num_rows,
        size_bytes=_total_bytes(inventory),
        group_count=timed_runs[0][2],
        plan_s=median(find_s + pack_s for find_s, pack_s, _ in timed_runs),
        pack_s=median(pack_s for _, pack_s, _ in timed_runs),
    )


def _generated(file_count: int, bucket_count: int) -> pa.Table:
    """Return an inventory with log-normal sizes around 32 KiB, in folders of a thousand files."""
    number = np.arange(file_count)
    sizes = np.random.default_rng(3).lognormal(np.log(32 * KIB), 1.0, file_count).astype(np.int64)
    return pa.table(
        {
            "path": [
                f"part={at // _FILES_PER_FOLDER}/{at:08d}.parquet" for at in range(file_count)
            ],
            "size_bytes": np.maximum(sizes, MIN_SIZE_BYTES),
            "bucket": pa.array(number % bucket_count, pa.int32()),
        }
    )


def _table(plans: list[tuple[int, PeerPlan]]) -> RichTable:
    table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("peer")
    for name in ("files", "buckets", "seconds", "of which packing", "files/s", "groups"):
        table.add_column(name, justify="right")
    for buckets, plan in plans:
        table.add_row(
            plan.peer,
            f"{plan.file_count:,}",
            str(buckets),
            seconds_text(plan.plan_s),
            seconds_text(plan.pack_s),
            f"{plan.files_per_s:,.0f}",
            f"{plan.group_count:,}",
        )
    return table


if __name__ == "__main__":
    main()
