"""Test cases of other systems' grouping as data: inventories in, groups out.

A case gives the sizes of the files in the order of their paths, other relevant properties, the
plan's options, and the expected groups: the number of splits in each, or their lengths. The order
of groups, and of splits within a group, does not matter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from tests.support.tables.inventories import MIB

MB = 1_000_000
GIB = 2**30


@dataclass(frozen=True, kw_only=True)
class Case:
    """One expectation of one strategy; omitted columns have defaults."""

    name: str
    strategy: str
    sizes: Sequence[int]
    options: Mapping[str, int] = field(default_factory=dict)
    hosts: Sequence[Sequence[str]] | None = None
    buckets: Sequence[int | None] | None = None
    offsets: Sequence[Sequence[int]] | None = None
    deletes: Sequence[Sequence[int]] | None = None
    suffix: str = ""
    counts: Sequence[int] | None = None
    lengths: Sequence[Sequence[int]] | None = None
    preferred: Sequence[Sequence[str]] | None = None

    def published(self) -> pa.Table:
        """Return the inventory as a caller publishes it."""
        count = len(self.sizes)
        deletes = self.deletes or [[]] * count
        return pa.table(
            {
                "path": [f"{n:06d}{self.suffix}" for n in range(count)],
                "size_bytes": pa.array(self.sizes, pa.int64()),
                "mtime_ns": pa.array([0] * count, pa.int64()),
                "row_count": pa.array([1] * count, pa.int64()),
                "bucket": pa.array(self.buckets or [None] * count, pa.int32()),
                "hosts": pa.array(self.hosts or [[]] * count, pa.list_(pa.string())),
                "row_group_offsets": pa.array(self.offsets or [[]] * count, pa.list_(pa.int64())),
                "delete_count": pa.array([len(sizes) for sizes in deletes], pa.int32()),
                "delete_bytes": pa.array([sum(sizes) for sizes in deletes], pa.int64()),
            }
        )

    def check(self, lengths: Sequence[Sequence[int]], preferred: Sequence[Sequence[str]]) -> None:
        """Check a plan's groups, and the hosts that each prefers, against the case."""
        if self.counts is not None:
            assert sorted(map(len, lengths)) == sorted(self.counts)
        if self.lengths is not None:
            assert sorted(map(sorted, lengths)) == sorted(map(sorted, self.lengths))
        if self.preferred is not None:
            assert sorted(map(sorted, preferred)) == sorted(map(sorted, self.preferred))


def _openlookeng(name: str, sizes: Sequence[int], most: int, **values: Any) -> Case:
    options = {"max_split_size": 64 * MIB, "max_small_splits_grouped": most}
    return Case(name=name, strategy="openlookeng", sizes=sizes, options=options, **values)


def _spark(name: str, sizes: Sequence[int], limit: int, cost: int, **values: Any) -> Case:
    options = {"max_split_size": limit, "open_file_cost": cost, "parallelism": 1}
    options |= values.pop("options", {})
    return Case(name=name, strategy="spark", sizes=sizes, options=options, **values)


def _iceberg(name: str, sizes: Sequence[int], target: int, cost: int, **values: Any) -> Case:
    options = {"max_split_size": target, "open_file_cost": cost, "parallelism": 1}
    options |= values.pop("options", {})
    return Case(name=name, strategy="iceberg", sizes=sizes, options=options, **values)


def _tez(name: str, sizes: Sequence[int], desired: int, **values: Any) -> Case:
    options = {"max_split_size": GIB, "min_split_size": 1, "parallelism": desired}
    options |= values.pop("options", {})
    return Case(name=name, strategy="tez", sizes=sizes, options=options, **values)


def _neighbours(count: int) -> list[list[str]]:
    return [[f"vm{n % 3}", f"vm{(n + 1) % 3}"] for n in range(count)]


OPENLOOKENG = [
    _openlookeng("small splits", [100] * 12, 10, hosts=[["vm1", "vm3", "vm2"]] * 12, counts=[4] * 3),
    _openlookeng("one replica", [100] * 30, 10, hosts=[["vm1"]] * 30, counts=[10] * 3),
    _openlookeng("two replicas", [100] * 24, 10, hosts=_neighbours(24), counts=[4] * 6),
    _openlookeng(
        "two replicas, over ten a host", [100] * 90, 10, hosts=_neighbours(90), counts=[10] * 9
    ),
    _openlookeng("count limit of 30", [100] * 90, 30, hosts=[["vm1"]] * 90, counts=[30] * 3),
    _openlookeng(
        "buckets",
        [100] * 100,
        100,
        hosts=[["vm1"]] * 100,
        buckets=[n % 4 for n in range(100)],
        counts=[25] * 4,
    ),
    _openlookeng(
        "alternating sizes",
        [32 * MIB, 64 * MIB] * 50,
        100,
        hosts=[["vm1"]] * 100,
        lengths=[[64 * MIB]] * 50 + [[32 * MIB] * 2] * 25,
    ),
    _openlookeng("all large", [64 * MIB] * 100, 100, hosts=[["vm1"]] * 100, counts=[1] * 100),
    _openlookeng("a bucket without hosts", [100] * 10, 10, buckets=[2] * 10, counts=[10]),
    _openlookeng("no hosts", [100] * 25, 10, counts=[10, 10, 5]),
    *(
        _openlookeng(
            f"{count} splits at three hosts", [1] * count, 10, hosts=[["a", "b", "c"]] * count,
            counts=counts,
        )
        for count, counts in (
            (1, [1]), (2, [2]), (3, [1] * 3), (4, [1] * 4), (5, [1] * 5), (6, [2] * 3),
            (7, [2, 2, 2, 1]), (11, [3, 3, 3, 2]),
        )
    ),
    Case(
        name="largest and smallest in turn",
        strategy="openlookeng",
        sizes=range(1, 11),
        options={"max_split_size": 20},
        hosts=[["a"]] * 10,
        lengths=[[10, 1, 9], [8, 2, 7, 3], [6, 4, 5]],
    ),
]  # fmt: skip

SPARK = [
    _spark("ten tiny files", [1] * 10, 128 * MIB, 4 * MIB, counts=[10]),
    _spark("5, 5, 5 at 11", [5] * 3, 11, 1, counts=[2, 1]),
    _spark("15, 3 at 10", [15, 3], 10, 1, suffix=".txt", lengths=[[10], [5, 3]]),
    _spark(
        "2, 2, 1, 1, 1, 1 at 4", [2, 2, 1, 1, 1, 1], 4, 1, lengths=[[2], [2, 1], [1, 1], [1]]
    ),
    _spark("gzip is not split", [3, 1, 1], 2, 0, suffix=".txt.gz", lengths=[[3], [1, 1]]),
    _spark("bzip2 is split", [3, 1, 1], 2, 0, suffix=".txt.bz2", lengths=[[2], [1, 1], [1]]),
    _spark("seven files in three buckets", [1] * 7, 128 * MIB, 4 * MIB,
           buckets=[0, 0, 0, 0, 0, 2, 2], counts=[5, 2]),
    _spark("one partition with buckets 0 and 2", [1] * 4, 128 * MIB, 4 * MIB,
           buckets=[0, 0, 0, 2], counts=[3, 1]),
    _spark(
        "the hosts of a group are those with most bytes",
        [10, 20, 5, 5],
        128 * MIB,
        4 * MIB,
        hosts=[["h0", "h1"], ["h1", "h2"], ["h3"], ["h4"]],
        counts=[4],
        preferred=[["h0", "h1", "h2"]],
    ),
    _spark("localhost is no host", [10, 20], 128 * MIB, 4 * MIB,
           hosts=[["localhost"], ["localhost", "h1"]], counts=[2], preferred=[["h1"]]),
    _spark("one partition wanted", [1] * 3, 128 * MIB, 4 * MIB, counts=[3]),
    _spark("ten partitions wanted", [1] * 3, 128 * MIB, 4 * MIB, options={"parallelism": 10},
           counts=[1] * 3),
    _spark("twelve files of 2 MB at 2 MB", [2 * MIB] * 12, 2 * MIB, 4 * MIB, suffix=".csv",
           counts=[1] * 12),
    _spark("twelve files of 2 MB in at most four partitions", [2 * MIB] * 12, 128 * MIB, 4 * MIB,
           options={"parallelism": 12, "max_partition_num": 4}, counts=[3] * 4),
    _spark("twelve files of 4 MB at 2 MB", [4 * MIB] * 12, 2 * MIB, 4 * MIB, suffix=".csv",
           lengths=[[2 * MIB]] * 24),
]  # fmt: skip

ICEBERG = [
    *(
        _iceberg(f"1 to 5 at {target}", range(1, 6), target, 0, lengths=lengths)
        for target, lengths in (
            (3, [[1, 2], [3], [4], [5]]),
            (5, [[1, 2], [3], [4], [5]]),
            (6, [[1, 2, 3], [4], [5]]),
            (8, [[1, 2, 3], [4], [5]]),
            (9, [[1, 2, 3], [4, 5]]),
            (10, [[1, 2, 3, 4], [5]]),
            (14, [[1, 2, 3, 4], [5]]),
            (15, [[1, 2, 3, 4, 5]]),
        )
    ),
    _iceberg("5, 1 three times at 8", [5, 1] * 3, 8, 0, lengths=[[5, 1, 1, 1], [5], [5]]),
    _iceberg(
        "task groups",
        [64, 64, 128, 32, 32, 32, 32],
        128,
        4,
        lengths=[[64, 64], [128], [32] * 4],
    ),
    _iceberg(
        "files with delete files",
        [150, 50, 50, 1, 75],
        300,
        50,
        deletes=[[50, 100], [1, 50], [100], [1, 1], [75]],
        lengths=[[150], [50, 50], [1, 75]],
    ),
    *(
        _iceberg(
            f"5, 1 three times at 8, looking back {lookback}",
            [5, 1] * 3,
            8,
            0,
            options={"planning_lookback": lookback},
            lengths=lengths,
        )
        for lookback, lengths in (
            (100, [[5, 1, 1, 1], [5], [5]]),
            (2, [[5, 1, 1], [5, 1], [5]]),
            (1, [[5, 1], [5, 1], [5, 1]]),
        )
    ),
    _iceberg(
        "task groups, looking back 1",
        [64, 64, 128, 32, 32, 32, 32],
        128,
        0,
        options={"planning_lookback": 1},
        lengths=[[64, 64], [128], [32] * 4],
    ),
    _iceberg("four files of one key at 512", [128] * 4, 512, 4, buckets=[0] * 4, counts=[4]),
    _iceberg("two keys at 512", [128] * 4, 512, 4, buckets=[0, 0, 1, 1], counts=[2, 2]),
    _iceberg("two keys at 128", [128] * 4, 128, 4, buckets=[0, 0, 1, 1], counts=[1] * 4),
    _iceberg(
        "500 GB for 500 slots at 128 MB",
        [GIB] * 500,
        128 * MIB,
        4 * MIB,
        suffix=".csv",
        options={"parallelism": 500},
        lengths=[[128 * MIB]] * 4000,
    ),
    _iceberg(
        "500 GB for 500 slots at 2 GB",
        [2 * GIB] * 250,
        2 * GIB,
        4 * MIB,
        suffix=".csv",
        options={"parallelism": 500},
        lengths=[[GIB]] * 500,
    ),
    _iceberg("corrupt offsets", [10], 1, 0, offsets=[[40, 50]], suffix=".csv", lengths=[[1]] * 10),
]

TEZ = [
    *(
        _tez(
            f"100 splits of 10 MB, {desired} wanted",
            [10 * MB] * 100,
            desired,
            options={"min_split_size": 50 * MB, "max_split_size": 500 * MB},
            counts=counts,
        )
        # Without a desired number, Tez makes one group per split.
        for desired, counts in ((100, [4] * 25), (1, [33, 33, 33, 1]), (1000, [4] * 25))
    ),
    _tez("as many groups wanted as splits", [10] * 5, 5, counts=[1] * 5),
    _tez(
        "locations that appear twice",
        [10] * 3,
        1,
        hosts=[["a", "a", "b"], ["a", "b", "b"], ["b", "a"]],
        counts=[3],
    ),
    _tez("no locations", [10] * 3, 1, hosts=[[], [], []], counts=[3]),
    _tez("estimated sizes", [10, 10, 21], 2, lengths=[[10, 10], [21]]),
    _tez(
        "splits left over by nodes are grouped by racks, in smaller groups",
        [100] * 12,
        4,
        hosts=[[f"node{n % 3}"] for n in range(12)],
        counts=[3, 3, 3, 2, 1],
        preferred=[["node0"], ["node1"], ["node2"], ["node0", "node1"], ["node2"]],
    ),
    _tez(
        "splits left over by nodes are grouped by racks, in equally large groups",
        [100] * 12,
        4,
        hosts=[[f"node{n % 3}"] for n in range(12)],
        options={"rack_split_reduction": 1.0},
        counts=[3, 3, 3, 3],
        preferred=[["node0"], ["node1"], ["node2"], ["node0", "node1", "node2"]],
    ),
    _tez(
        "a local file system has no minimum length",
        [10] * 8,
        4,
        hosts=[["localhost"]] * 8,
        options={"min_split_size": 50},
        counts=[2] * 4,
        preferred=[[]] * 4,
    ),
    _tez(
        "a bucket gets its share by bytes",
        [100] * 12,
        6,
        buckets=[0] * 8 + [1] * 4,
        counts=[2] * 6,
    ),
]

HADOOP = [
    *(
        Case(
            name=f"{size} bytes are cut at 100",
            strategy=strategy,
            sizes=[size],
            options={"max_split_size": 100, "min_split_size": 1},
            suffix=".txt",
            lengths=[[length] for length in lengths],
        )
        for strategy in ("balanced", "openlookeng", "tez")
        for size, lengths in ((150, [75, 75]), (250, [100, 75, 75]))
    ),
    Case(
        name="three blocks are cut at half a block",
        strategy="openlookeng",
        sizes=[1024] * 3,
        options={"max_split_size": 512},
        suffix=".txt",
        lengths=[[512]] * 6,
    ),
]

CASES = [*OPENLOOKENG, *SPARK, *ICEBERG, *TEZ, *HADOOP]
