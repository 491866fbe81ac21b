"""Eight tables that are written, read and maintained at once, and what their readers must see.

Each write adds some batches: rows with the number of the batch, all in one partition. So a reader
can tell from the numbers which writes it sees. A batch is there with all of its rows from the time
when its write has ended until a write that replaces it begins, and in between as the write says.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from windrow.client import Client
from windrow_core.models import Column
from windrow_tables.commits.inventories import list_files

ROWS = 48
# Partitions at first, and those that come while the benchmark runs.
OLD_PARTITIONS, NEW_PARTITIONS = 4, 8
_OLD_FILES = 40
_OLD_AGE_S = 3 * 86_400
COLUMNS = [
    Column(name="batch", type="bigint"),
    Column(name="number", type="int"),
    Column(name="value", type="double"),
]

Mode: TypeAlias = Literal["append", "overwrite", "overwrite_partitions"]
# Batch, partition and rows.
Rows: TypeAlias = list[tuple[int, int, float, int]]
# Rows, and distinct ones, of each batch.
Counts: TypeAlias = Mapping[int, tuple[int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """How a table is written.

    Attributes:
        name: Name of the table.
        is_parted: Whether it has partitions.
        mode: Mode of its writes.
        files: Files that a write makes in each partition.
        where: Partitions of a write: the newest, an older one, or all of them.
        weight: How often it is written, compared with the others.
    """

    name: str
    is_parted: bool
    mode: Mode
    files: int
    where: Literal["newest", "older", "all"] = "newest"
    weight: int = 4


PATTERNS = (
    Pattern(name="appends", is_parted=True, mode="append", files=3),
    Pattern(name="appends_flat", is_parted=False, mode="append", files=3),
    Pattern(name="stream", is_parted=True, mode="append", files=8, weight=8),
    Pattern(name="stream_flat", is_parted=False, mode="append", files=8, weight=8),
    Pattern(name="late", is_parted=True, mode="append", files=2, where="older"),
    Pattern(name="backfill", is_parted=True, mode="append", files=4, where="all", weight=1),
    Pattern(name="overwrites", is_parted=True, mode="overwrite_partitions", files=8, weight=2),
    Pattern(name="overwrites_flat", is_parted=False, mode="overwrite", files=24, weight=2),
)


@dataclass(slots=True, kw_only=True)
class Batch:
    """The rows of one write in one partition; times are those of `time.monotonic`.

    Attributes:
        write: Number of its write.
        partition: Its partition.
        began_s: When its write began.
        ended_s: When it had ended.
        replaced_s: When a write began that replaces it.
        gone_s: When that had ended.
    """

    write: int
    partition: int
    began_s: float
    ended_s: float = float("inf")
    replaced_s: float = float("inf")
    gone_s: float = float("inf")


@dataclass(slots=True)
class Faults:
    """What readers have seen that they should not have.

    Attributes:
        lost: Rows of writes that had ended, and were not there.
        doubled: Rows that were there more than once.
        foreign: Rows of writes that had not begun, or had been replaced.
        torn: Batches of which only some rows were there.
        mixed: Partitions with rows of a write and of another one that replaces them.
    """

    lost: int = 0
    doubled: int = 0
    foreign: int = 0
    torn: int = 0
    mixed: int = 0


@dataclass(slots=True)
class MaintainedTable:
    """A table, and all that is known of the writes to it.

    Attributes:
        pattern: How it is written.
        location: Its folder.
        batches: Its batches, by number.
        files: Number of files that were written.
        size_bytes: Their bytes.
    """

    pattern: Pattern
    location: Path
    batches: dict[int, Batch] = field(default_factory=dict)
    files: int = 0
    size_bytes: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def name(self) -> str:
        """Name of the table."""
        return f"kept.{self.pattern.name}"

    @property
    def rows_due(self) -> int:
        """Number of rows that are there once every write has ended."""
        return ROWS * sum(
            batch.ended_s < batch.replaced_s == float("inf") for batch in self.batches.values()
        )

    def create(self, client: Client, chance: random.Random) -> None:
        """Register the table with many small files, written some days ago."""
        long_ago = time.time() - _OLD_AGE_S
        parted = self.pattern.is_parted
        self.location.mkdir(parents=True)
        for partition in range(OLD_PARTITIONS if parted else 1):
            folder = self.location / f"p={partition}" if parted else self.location
            folder.mkdir(exist_ok=True)
            rows = self.begin([partition] * _OLD_FILES, chance)
            for at in range(0, len(rows), ROWS):
                batch, number, value, _ = zip(*rows[at : at + ROWS], strict=True)
                columns = {
                    "batch": pa.array(batch, pa.int64()),
                    "number": pa.array(number, pa.int32()),
                    "value": pa.array(value, pa.float64()),
                }
                path = folder / f"old-{batch[0]}.parquet"
                pq.write_table(pa.table(columns), path)
                os.utime(path, (long_ago, long_ago))
                self.files += 1
                self.size_bytes += path.stat().st_size
            self.end(rows)
        partitions = {"p": "int"} if parted else {}
        client.register_table(
            self.name, str(self.location), columns=COLUMNS, partition_columns=partitions
        )
        client.refresh(self.name)

    def partitions(self, progress: float, chance: random.Random) -> list[int]:
        """Return the partitions of the next write.

        Args:
            progress: Which part of the time has passed, from 0 to 1.
            chance: Chooses among older ones.
        """
        newest = self.newest(progress)
        if self.pattern.where == "all":
            return list(range(newest + 1))
        return [chance.randrange(newest) if self.pattern.where == "older" else newest]

    def newest(self, progress: float) -> int:
        """Return the partition of the current hour; 0 without partitions."""
        return OLD_PARTITIONS + int(progress * NEW_PARTITIONS) if self.pattern.is_parted else 0

    def begin(self, partitions: Sequence[int], chance: random.Random) -> Rows:
        """Return the rows of a write that begins, one batch for each partition."""
        with self._lock:
            now_s, first = time.monotonic(), len(self.batches)
            for number, partition in enumerate(partitions, first):
                self.batches[number] = Batch(write=first, partition=partition, began_s=now_s)
            if self.pattern.mode != "append":
                for number in range(first):
                    batch = self.batches[number]
                    if batch.partition in partitions and batch.replaced_s == float("inf"):
                        batch.replaced_s = now_s
        return [
            (batch, number, chance.random(), partition)
            for batch, partition in enumerate(partitions, first)
            for number in range(ROWS)
        ]

    def end(self, rows: Rows) -> None:
        """Note that the write of these rows has ended."""
        numbers = {batch for batch, *_ in rows}
        with self._lock:
            now_s = time.monotonic()
            for number in numbers:
                self.batches[number].ended_s = now_s
            if self.pattern.mode != "append":
                for number, batch in self.batches.items():
                    if number < min(numbers) and batch.replaced_s < now_s:
                        batch.gone_s = min(batch.gone_s, now_s)

    def compare(
        self,
        counts: Counts,
        began_s: float,
        ended_s: float,
        faults: Faults,
        partition: int | None = None,
    ) -> None:
        """Compare what a reader saw with what it must see.

        Args:
            counts: Rows of each batch that it saw.
            began_s: When it began to read.
            ended_s: When it had read everything.
            faults: Faults are added here.
            partition: The only partition that it read; all by default.
        """
        with self._lock:
            writes: dict[int, set[int]] = {}
            for number, batch in self.batches.items():
                rows, distinct = counts.get(number, (0, 0))
                is_wanted = partition is None or batch.partition == partition
                is_due = is_wanted and batch.ended_s <= began_s and batch.replaced_s > ended_s
                is_over = not is_wanted or batch.began_s > ended_s or batch.gone_s <= began_s
                faults.lost += (ROWS - distinct) if is_due else 0
                faults.foreign += rows if is_over else 0
                faults.doubled += rows - distinct
                faults.torn += 0 < distinct < ROWS
                if rows and self.pattern.mode != "append":
                    writes.setdefault(batch.partition, set()).add(batch.write)
            faults.mixed += sum(len(some) > 1 for some in writes.values())
            faults.foreign += sum(
                rows for number, (rows, _) in counts.items() if number not in self.batches
            )


def counts_of(rows: pa.Table) -> Counts:
    """Return the rows of each batch, and how many of them are distinct."""
    counts = rows.group_by("batch").aggregate([("number", "count"), ("number", "count_distinct")])
    columns = ("batch", "number_count", "number_count_distinct")
    return {
        batch: (count, distinct)
        for batch, count, distinct in zip(
            *(counts[name].to_pylist() for name in columns), strict=True
        )
    }


def listed(location: Path) -> pa.Table:
    """Return the rows of the files that are in a table's folder."""
    files = list_files(str(location))["path"].to_pylist()
    tables = [pq.ParquetFile(location / path).read(["batch", "number"]) for path in files]
    return pa.concat_tables(tables)
