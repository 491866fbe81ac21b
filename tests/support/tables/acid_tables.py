"""A model of Hive's transactional tables: the files of a history, and the rows each reader sees.

The model keeps each row with the writes that added and deleted it. It shares no code with the
reader: names, codes and compactions are spelled out here, as Hive makes them.
"""

from __future__ import annotations

import io
import random
import shutil
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc

NEVER = 2**63 - 1
TYPES = pa.schema([("id", pa.int64()), ("name", pa.string())])
ROW = pa.struct(list(TYPES))
NAMED = pa.schema(
    [
        ("operation", pa.int32()),
        ("originalTransaction", pa.int64()),
        ("bucket", pa.int32()),
        ("rowId", pa.int64()),
        ("currentTransaction", pa.int64()),
        ("row", ROW),
    ]
)


@dataclass(slots=True)
class Row:
    """A row, with the name that Hive gives it.

    Attributes:
        partition: Folder of its partition, with `/` at its end; may be empty.
        added: The write that added it; 0 if the row is older than the transactional table.
        deleted: For each write that deleted it, committed or not, the statement.
    """

    partition: str
    bucket: int
    added: int
    statement: int
    number: int
    values: dict[str, Any]
    deleted: dict[int, int] = field(default_factory=dict)

    @property
    def code(self) -> int:
        """Hive's number of bucket and statement."""
        return (1 << 29) + (self.bucket << 16) + self.statement

    @property
    def name(self) -> tuple[int, int, int]:
        return self.added, self.code, self.number


def written(rows: Iterable[tuple[int, Row, int]], types: pa.StructType = ROW) -> bytes:
    """Return an ORC file of (operation, row, write) in Hive's order."""
    ordered = sorted(rows, key=lambda one: one[1].name)
    columns = {
        "operation": [operation for operation, _, _ in ordered],
        "originalTransaction": [row.added for _, row, _ in ordered],
        "bucket": [row.code for _, row, _ in ordered],
        "rowId": [row.number for _, row, _ in ordered],
        "currentTransaction": [write for _, _, write in ordered],
        "row": [None if operation == 2 else row.values for operation, row, _ in ordered],
    }
    return orc_bytes(pa.table(columns, schema=NAMED.set(5, pa.field("row", types))))


def orc_bytes(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    orc.write_table(table, sink)
    return sink.getvalue()


class AcidTable:
    """A table as Hive would have written it in a history.

    Args:
        location: An empty folder, or one that does not exist yet.
        partitions: Folders of partitions, such as `ds=1/`; `("",)` for none.
        buckets: Number of buckets.
    """

    def __init__(self, location: Path, partitions: Sequence[str] = ("",), buckets: int = 1) -> None:
        self.location = location
        location.mkdir(parents=True, exist_ok=True)
        self.partitions, self.buckets = partitions, buckets
        self.rows: list[Row] = []
        self.last_write = 0
        self.aborted: set[int] = set()
        self.open: set[int] = set()
        self.visible = 0
        self._next_id = 0
        # The write id up to which each partition was compacted into a base.
        self.based: dict[str, int] = {}
        # Overwrites: partition and write.
        self.overwrites: dict[str, list[int]] = defaultdict(list)

    def put(self, path: str, content: bytes) -> None:
        """Write a file."""
        target = self.location / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)

    def new_row(self, partition: str, bucket: int, write: int, statement: int, at: int) -> Row:
        self._next_id += 1
        values = {"id": self._next_id, "name": None if self._next_id % 5 == 0 else f"r{at}"}
        row = Row(partition, bucket, write, statement, at, values)
        self.rows.append(row)
        return row

    def originals(self, files: Sequence[tuple[str, str, int]]) -> None:
        """Write files from before the table was transactional: partition, name, row count."""
        numbers: defaultdict[tuple[str, int], int] = defaultdict(int)
        for partition, name, count in sorted(files, key=lambda one: one[0] + one[1]):
            bucket = int(name.rpartition("/")[2].split("_")[0])
            new_rows = []
            for _ in range(count):
                at = numbers[partition, bucket]
                numbers[partition, bucket] += 1
                new_rows.append(self.new_row(partition, bucket, 0, 0, at).values)
            self.put(partition + name, orc_bytes(pa.Table.from_pylist(new_rows, schema=TYPES)))

    def begin(self) -> int:
        """Start a write."""
        self.last_write += 1
        return self.last_write

    def folder(self, kind: str, least: int, most: int, statement: int | None = None) -> str:
        name = f"{kind}_{least:07d}_{most:07d}"
        return name if statement is None else f"{name}_{statement:04d}"

    def insert(self, write: int, statement: int, places: Sequence[tuple[str, int, int]]) -> None:
        """Add rows: partition, bucket, row count."""
        folder = self.folder("delta", write, write, statement)
        for partition, bucket, count in places:
            rows = [self.new_row(partition, bucket, write, statement, at) for at in range(count)]
            content = written([(0, row, write) for row in rows])
            self.put(f"{partition}{folder}/bucket_{bucket:05d}", content)
            self.put(f"{partition}{folder}/_orc_acid_version", b"2")

    def load(self, write: int, statement: int, partition: str, counts: Sequence[int]) -> None:
        """Add files as they are, without names of rows, as LOAD DATA does."""
        folder = self.folder("delta", write, write, statement)
        at = 0
        for number, count in enumerate(counts):
            rows = []
            for _ in range(count):
                rows.append(self.new_row(partition, 0, write, statement, at))
                at += 1
            name = "000000_0" + (f"_copy_{number}" if number else "")
            table = pa.Table.from_pylist([row.values for row in rows], schema=TYPES)
            self.put(f"{partition}{folder}/{name}", orc_bytes(table))

    def delete(self, write: int, statement: int, rows: Sequence[Row]) -> None:
        """Delete rows."""
        folder = self.folder("delete_delta", write, write, statement)
        by_file: defaultdict[str, list[Row]] = defaultdict(list)
        for row in rows:
            row.deleted[write] = statement
            by_file[f"{row.partition}{folder}/bucket_{row.bucket:05d}"].append(row)
        for path, gone in by_file.items():
            self.put(path, written([(2, row, write) for row in gone]))

    def overwrite(self, write: int, partition: str, places: Sequence[tuple[int, int]]) -> None:
        """Replace the rows of a partition: bucket, row count."""
        self.overwrites[partition].append(write)
        (self.location / f"{partition}base_{write:07d}").mkdir(parents=True)
        for bucket, count in places:
            rows = [self.new_row(partition, bucket, write, 0, at) for at in range(count)]
            content = written([(0, row, write) for row in rows])
            self.put(f"{partition}base_{write:07d}/bucket_{bucket:05d}", content)
            self.put(f"{partition}base_{write:07d}/_orc_acid_version", b"2")

    def is_seen(self, write: int, reader: Reader) -> bool:
        return write == 0 or reader.sees(write)

    def alive(self, partition: str, reader: Reader) -> list[Row]:
        """Return the rows that a reader sees in a partition."""
        overwritten = max(
            (one for one in self.overwrites[partition] if reader.sees(one)), default=-1
        )
        return [
            row
            for row in self.rows
            if row.partition == partition
            and row.added >= overwritten
            and self.is_seen(row.added, reader)
            and not any(reader.sees(write) for write in row.deleted)
        ]

    def ids(self, reader: Reader) -> list[int]:
        """Return the ids of all rows that a reader sees."""
        return sorted(
            row.values["id"]
            for partition in self.partitions
            for row in self.alive(partition, reader)
        )

    def now(self) -> Reader:
        """Return the reader that starts now."""
        return Reader(self.last_write, frozenset(self.open), frozenset(self.aborted))

    def compact(self, partition: str, *, major: bool, hive3: bool = False) -> str | None:
        """Merge the committed writes before the first open one; leave their files in place."""
        most = min(self.open, default=self.last_write + 1) - 1
        after = max(
            [
                self.based.get(partition, 0),
                *(
                    one
                    for one in self.overwrites[partition]
                    if one <= most and one not in self.aborted
                ),
            ]
        )
        if most <= after:
            return None
        self.visible += 1
        # With its name of Hive 3, this base would share the folder of another.
        hive3 = hive3 and not (self.location / partition / f"base_{most:07d}").exists()
        suffix = "" if hive3 else f"_v{self.visible:07d}"
        reader = Reader(most, frozenset(), frozenset(self.aborted))
        if major:
            folder = f"base_{most:07d}{suffix}"
            (self.location / partition / folder).mkdir(parents=True)
            if hive3:
                metadata = b'{"thisFileVersion":"0","dataFormat":"compacted"}'
                self.put(f"{partition}{folder}/_metadata_acid", metadata)
            self._write_merged(
                f"{partition}{folder}", [(0, r, r.added) for r in self.alive(partition, reader)]
            )
            self.based[partition] = most
            return folder
        seen = [
            row
            for row in self.rows
            if row.partition == partition and after < row.added <= most and reader.sees(row.added)
        ]
        gone = [
            (2, row, write)
            for row in self.rows
            if row.partition == partition
            for write in row.deleted
            if after < write <= most and reader.sees(write)
        ]
        least = after + 1
        if not seen and not gone:
            return None
        folder = f"{self.folder('delta', least, most)}{suffix}"
        if seen:
            self._write_merged(f"{partition}{folder}", [(0, row, row.added) for row in seen])
        if gone:
            self._write_merged(f"{partition}delete_{folder}", gone)
        return folder

    def _write_merged(self, folder: str, rows: Sequence[tuple[int, Row, int]]) -> None:
        by_bucket: defaultdict[int, list[tuple[int, Row, int]]] = defaultdict(list)
        for one in rows:
            by_bucket[one[1].bucket].append(one)
        for bucket, some in by_bucket.items():
            self.put(f"{folder}/bucket_{bucket:05d}", written(some))

    def _is_overwrite(self, base: Path) -> bool:
        return "_v" not in base.name and not (base / "_metadata_acid").exists()

    def clean(self, partition: str) -> None:
        """Remove files that a base has replaced, and those of aborted writes."""
        based = self.based.get(partition)
        for path in (self.location / partition).iterdir():
            parts = path.name.removeprefix("delete_").split("_")
            if path.name.startswith(("delta_", "delete_delta_")):
                least, most = int(parts[1]), int(parts[2])
                if (based is not None and most <= based) or (
                    least == most and least in self.aborted
                ):
                    shutil.rmtree(path)
            elif path.name.startswith("base_"):
                if (int(parts[1]) in self.aborted and self._is_overwrite(path)) or (
                    based is not None and int(parts[1]) < based
                ):
                    shutil.rmtree(path)
            elif based is not None and path.is_file():
                path.unlink()


@dataclass(frozen=True, slots=True)
class Reader:
    """The writes that a reader sees."""

    highest: int
    open: frozenset[int]
    aborted: frozenset[int]

    def sees(self, write: int) -> bool:
        return write <= self.highest and write not in self.open and write not in self.aborted

    @property
    def text(self) -> str:
        """The valid write ids, as Hive's metastore writes them."""
        opened = ",".join(map(str, sorted(one for one in self.open if one <= self.highest)))
        undone = ",".join(map(str, sorted(one for one in self.aborted if one <= self.highest)))
        least = min(self.open, default=NEVER)
        return f"db.t:{self.highest}:{least}:{opened}:{undone}"


def random_history(table: AcidTable, random_: random.Random, steps: int) -> None:
    """Make a history of inserts, updates, deletes, merges, loads, overwrites and compactions."""
    names = ["000000_0", "000000_0_copy_1", "000000_0_copy_10", "000000_0_copy_2"]
    if not table.rows and not table.last_write and random_.random() < 0.4:
        table.originals(
            [
                (partition, f"{bucket:06d}" + name[6:], random_.randint(1, 3))
                for partition in table.partitions
                for bucket in range(table.buckets)
                for name in random_.sample(names, random_.randint(0, 3))
            ]
        )
    for _ in range(steps):
        _step(table, random_)


def _step(table: AcidTable, random_: random.Random) -> None:
    partition = random_.choice(table.partitions)
    kind = random_.choices(
        ["write", "compact", "clean", "finish", "load", "overwrite"], [10, 3, 1, 2, 1, 1]
    )[0]
    if kind == "compact":
        major = random_.random() < 0.5
        table.compact(partition, major=major, hive3=major and random_.random() < 0.3)
        return
    if kind == "clean":
        table.clean(partition) if (table.location / partition).is_dir() else None
        return
    if kind == "finish":
        if table.open:
            done = random_.choice(sorted(table.open))
            table.open.discard(done)
            if random_.random() < 0.5:
                table.aborted.add(done)
        return
    before = table.now()
    write = table.begin()
    if kind == "load":
        table.load(
            write, 0, partition, [random_.randint(1, 3) for _ in range(random_.randint(1, 2))]
        )
    elif kind == "overwrite":
        if table.open:
            return
        table.overwrite(
            write,
            partition,
            [(b, random_.randint(1, 3)) for b in range(table.buckets) if random_.random() < 0.8],
        )
    else:
        gone: set[int] = set()
        for statement in range(random_.randint(1, 2)):
            _statement(table, random_, write, statement, before, gone)
    fate = random_.random()
    if fate < 0.15:
        table.aborted.add(write)
    elif fate < 0.25 and kind == "write":
        table.open.add(write)


def _statement(
    table: AcidTable,
    random_: random.Random,
    write: int,
    statement: int,
    before: Reader,
    gone: set[int],
) -> None:
    """Run one statement of a transaction; it sees the changes of the earlier ones."""
    partition = random_.choice(table.partitions)
    # Other open writes may hold locks on rows that they deleted.
    free = [
        row
        for row in table.alive(partition, before)
        if id(row) not in gone and not any(one in table.open for one in row.deleted)
    ]
    own = [
        row
        for row in table.rows
        if row.partition == partition and row.added == write and id(row) not in gone
    ]
    candidates = free + own
    chosen = random_.sample(candidates, min(len(candidates), random_.randint(0, 3)))
    what = random_.choice(["insert", "delete", "update", "merge"])
    if what != "insert" and chosen:
        table.delete(write, statement, chosen)
        gone.update(id(row) for row in chosen)
    counts = {"insert": 3, "delete": 0, "update": len(chosen), "merge": len(chosen) + 1}[what]
    places = [
        (partition, bucket, random_.randint(1, counts))
        for bucket in range(table.buckets)
        if counts and random_.random() < 0.8
    ]
    table.insert(write, statement, places)
