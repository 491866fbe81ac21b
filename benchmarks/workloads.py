"""Ten workloads to compare planners on, as inventories without files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from tables import KIB, MIB

from windrow_core.files.rows import ROW_COLUMN, inventory_schema, rows_of

Ints: TypeAlias = npt.NDArray[np.int64]
GIB = 1024 * MIB
SCHEMA = inventory_schema(pa.schema([]), pa.schema([]))


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A table to plan, and the number of tasks that read it at the same time."""

    name: str
    make: Callable[[], pa.Table]
    parallelism: int

    @cached_property
    def files(self) -> pa.Table:
        """Its inventory, made when it is first asked for."""
        return self.make()


def workloads(scale: float = 1.0) -> list[Workload]:
    """Return the ten workloads, with their numbers of files multiplied by `scale`."""
    return [
        Workload(
            name=name, make=partial(make, np.random.default_rng(7), scale), parallelism=parallelism
        )
        for name, parallelism, make in _WORKLOADS
    ]


def inventory(
    size_bytes: Ints,
    *,
    paths: pa.Array | None = None,
    bucket: Ints | None = None,
    hosts: Ints | None = None,
    host_names: list[str] | None = None,
    row_group_bytes: int | None = None,
    delete_count: Ints | None = None,
    delete_bytes: Ints | None = None,
) -> pa.Table:
    """Return an inventory in columns.

    Args:
        size_bytes: Sizes of n files.
        paths: Their paths; by default in 365 folders.
        bucket: Their buckets.
        hosts: Positions in `host_names`: n rows with one column per replica.
        host_names: Names of hosts, with their racks if known.
        row_group_bytes: Size of row groups; by default each file is one row group.
        delete_count: Number of delete files of each file.
        delete_bytes: Size of these delete files.
    """
    count = len(size_bytes)
    zeros = np.zeros(count, np.int64)
    columns = {
        "path": _paths(count) if paths is None else paths,
        "size_bytes": size_bytes,
        # One file per millisecond.
        "mtime_ns": 1_700_000_000_000_000_000 + np.arange(count) * 1_000_000,
        "row_count": size_bytes // 100 + 1,
        "bucket": pa.nulls(count, pa.int32()) if bucket is None else bucket,
        "hosts": _host_lists(count, hosts, host_names),
        "row_group_offsets": _row_groups(size_bytes, row_group_bytes),
        "delete_count": zeros if delete_count is None else delete_count,
        "delete_bytes": zeros if delete_bytes is None else delete_bytes,
        "partition": pa.StructArray.from_buffers(pa.struct([]), count, [None]),
        "stats": pa.StructArray.from_buffers(pa.struct([]), count, [None]),
    }
    arrays = {
        name: pa.array(values).cast(ROW_COLUMN[name].type)
        if isinstance(values, np.ndarray)
        else values
        for name, values in columns.items()
    }
    files = rows_of(arrays, SCHEMA, count)
    return files if paths is None else files.take(pc.sort_indices(files["path"]))


def grown(files: pa.Table, share: float, folder: str) -> pa.Table:
    """Return an inventory with an additional partition of similar files.

    Args:
        files: The inventory.
        share: Number of new files, as a share of the existing ones.
        folder: Folder of the new files; its name decides where they sort.
    """
    rng = np.random.default_rng(11)
    count = max(int(len(files) * share), 1)
    new = files.take(rng.integers(0, len(files), count))
    number = pc.utf8_lpad(pa.array(np.arange(count)).cast(pa.string()), 7, "0")
    tail = pc.replace_substring_regex(new["path"], r"^[^.]*", "")
    paths = pc.binary_join_element_wise(f"{folder}/part-", number, tail, "")
    changed = new["mtime_ns"].to_numpy() + 10**15 + np.arange(count)
    new = new.set_column(0, SCHEMA.field("path"), paths)
    new = new.set_column(2, SCHEMA.field("mtime_ns"), pa.array(changed))
    both = pa.concat_tables([files, new])
    return both.take(pc.sort_indices(both["path"]))


def replicas(rng: np.random.Generator, count: int, hosts: int, copies: int) -> Ints:
    """Return `copies` different hosts for each file, evenly distributed."""
    first = rng.integers(0, hosts, count)
    steps = 1 + rng.integers(0, max((hosts - 1) // max(copies - 1, 1), 1), (count, copies - 1))
    return (first[:, None] + np.cumsum(np.insert(steps, 0, 0, axis=1), axis=1)) % hosts


def _paths(count: int, folders: int = 365) -> pa.Array:
    files = np.arange(count)
    each = max(count // folders, 1)
    folder = pc.utf8_lpad(pa.array(files // each).cast(pa.string()), 5, "0")
    number = pc.utf8_lpad(pa.array(files % each).cast(pa.string()), 7, "0")
    return pc.binary_join_element_wise("ds=", folder, "/part-", number, ".snappy.parquet", "")


def _host_lists(count: int, hosts: Ints | None, names: list[str] | None) -> pa.Array:
    if hosts is None:
        return pa.ListArray.from_arrays(
            pa.array(np.zeros(count + 1, np.int32)), pa.array([], pa.string())
        )
    all_names = names or [f"worker-{host:03d}" for host in range(int(hosts.max()) + 1)]
    offsets = np.arange(count + 1, dtype=np.int32) * hosts.shape[1]
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(all_names).take(hosts.ravel()))


def _row_groups(size_bytes: Ints, every: int | None) -> pa.Array:
    counts = np.ones(len(size_bytes), np.int64)
    if every is not None:
        counts = np.maximum(size_bytes // every, 1)
    offsets = np.concatenate(([0], np.cumsum(counts)))
    within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], counts)
    starts = np.maximum(within * (every or 0), 4)
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), pa.array(starts))


def _lognormal(rng: np.random.Generator, count: int, median: int, sigma: float) -> Ints:
    return np.clip(rng.lognormal(np.log(median), sigma, count), KIB, 60 * MIB).astype(np.int64)


def _uniform_small(rng: np.random.Generator, scale: float) -> pa.Table:
    return inventory(rng.integers(64 * KIB, 512 * KIB, int(400_000 * scale)))


def _log_normal(rng: np.random.Generator, scale: float) -> pa.Table:
    return inventory(_lognormal(rng, int(300_000 * scale), 256 * KIB, 1.4))


def _zipf(rng: np.random.Generator, scale: float) -> pa.Table:
    sizes = np.minimum(rng.zipf(1.6, int(400_000 * scale)), 2**20) * 16 * KIB
    return inventory(np.minimum(sizes, 256 * MIB))


def _few_huge(rng: np.random.Generator, scale: float) -> pa.Table:
    sizes = rng.integers(4 * GIB, 24 * GIB, max(int(40 * scale), 4))
    return inventory(sizes, row_group_bytes=16 * MIB)


def _many_hosts(rng: np.random.Generator, scale: float) -> pa.Table:
    count = int(1_000_000 * scale)
    sizes = _lognormal(rng, count, 512 * KIB, 1.0)
    names = [f"/rack-{host // 20:02d}/worker-{host:03d}" for host in range(200)]
    return inventory(sizes, hosts=replicas(rng, count, 200, 3), host_names=names)


def _buckets(rng: np.random.Generator, scale: float) -> pa.Table:
    count = int(500_000 * scale)
    return inventory(_lognormal(rng, count, 512 * KIB, 1.0), bucket=rng.integers(0, 64, count))


def _one_file_partitions(rng: np.random.Generator, scale: float) -> pa.Table:
    count = int(200_000 * scale)
    number = pc.utf8_lpad(pa.array(np.arange(count)).cast(pa.string()), 7, "0")
    paths = pc.binary_join_element_wise("user=", number, "/part-0.snappy.parquet", "")
    return inventory(_lognormal(rng, count, 384 * KIB, 1.0), paths=paths)


def _mixed_formats(rng: np.random.Generator, scale: float) -> pa.Table:
    count = int(200_000 * scale)
    kind = rng.choice(3, count, p=[0.7, 0.27, 0.03])
    sizes = np.choose(
        kind,
        [
            _lognormal(rng, count, 128 * KIB, 1.0),
            _lognormal(rng, count, 1 * MIB, 1.0),
            rng.integers(8 * MIB, 200 * MIB, count),
        ],
    )
    ending = pa.array([".snappy.parquet", ".orc", ".csv.gz"]).take(pa.array(kind))
    paths = pc.binary_join_element_wise(
        pc.replace_substring(_paths(count), ".snappy.parquet", ""), ending, ""
    )
    return inventory(sizes, paths=paths)


def _delete_heavy(rng: np.random.Generator, scale: float) -> pa.Table:
    count = int(200_000 * scale)
    deletes = rng.poisson(6, count) * (rng.random(count) < 0.4)
    return inventory(
        _lognormal(rng, count, 512 * KIB, 1.0),
        delete_count=deletes,
        delete_bytes=deletes * rng.integers(4 * KIB, 256 * KIB, count),
    )


def _skewed_hosts(rng: np.random.Generator, scale: float) -> pa.Table:
    count = int(400_000 * scale)
    # A few hosts write most files, so they hold the first replica of each.
    writer = np.minimum(rng.geometric(0.25, count) - 1, 19)
    others = (
        writer[:, None] + 1 + rng.permuted(np.tile(np.arange(19), (count, 1)), axis=1)[:, :2]
    ) % 20
    hosts = np.concatenate((writer[:, None], others), axis=1)
    return inventory(_lognormal(rng, count, 512 * KIB, 1.0), hosts=hosts)


_WORKLOADS: list[tuple[str, int, Callable[[np.random.Generator, float], pa.Table]]] = [
    ("uniform small", 64, _uniform_small),
    ("log-normal", 64, _log_normal),
    ("Zipf sizes", 64, _zipf),
    ("few huge", 64, _few_huge),
    ("many hosts, 3 replicas", 400, _many_hosts),
    ("64 buckets", 64, _buckets),
    ("partitions of one file", 64, _one_file_partitions),
    ("mixed formats", 64, _mixed_formats),
    ("delete-heavy", 64, _delete_heavy),
    ("skewed hosts", 40, _skewed_hosts),
]
