"""Scans of snapshots: the manifests that can match a filter, read and worked on in threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Protocol, TypeVar

import numpy as np
import pyarrow as pa
from cachetools import LRUCache

from windrow_core.files.arrays import make_struct
from windrow_core.files.file_fields import DEFAULT, FIELD_ID
from windrow_core.files.rows import inventory_schema
from windrow_service.inventory.manifests.encoding import Manifest, decode_manifest
from windrow_service.inventory.manifests.live_files import merge_files
from windrow_service.planner.pruning.bounds import Bools
from windrow_service.planner.pruning.expressions import Expression, asks_for_values, columns_of
from windrow_service.planner.pruning.prune import Pruned
from windrow_service.planner.pruning.ranges import prune_manifests
from windrow_service.telemetry.meters import UNMEASURED, Meters
from windrow_service.usecases.ports import Checkpoint, Runner
from windrow_service.usecases.snapshots.ports import Snapshot, SnapshotStore


class Choice(Protocol):
    """Partitions of a snapshot that a caller names."""

    def manifests(self) -> Bools:
        """Return which of the snapshot's manifests have files in these partitions."""

    def marked(self, at: int, files: pa.Table) -> pa.Table:
        """Return a manifest's rows with a column that tells which are in these partitions.

        Args:
            at: Position of the manifest in the snapshot.
            files: All rows of the manifest.
        """


@dataclass(frozen=True, slots=True)
class SnapshotScan:
    """The manifests of a snapshot that can match a filter.

    Attributes:
        snapshot: The whole snapshot.
        expression: The filter; None keeps every file.
        positions: Positions of the manifests that can match.
        others: Files and bytes of the other manifests.
        choice: The partitions that the caller names; None means all.
    """

    snapshot: Snapshot
    expression: Expression | None
    positions: Sequence[int]
    others: Pruned
    choice: Choice | None = None

    @classmethod
    def of(
        cls, snapshot: Snapshot, expression: Expression | None, choice: Choice | None = None
    ) -> SnapshotScan:
        """Prune a snapshot's manifests by their ranges and partitions."""
        unsure = columns_with_defaults(snapshot.data_schema)
        among = None if choice is None else choice.manifests()
        mask, others = prune_manifests(snapshot.ranges, expression, unsure, among)
        return cls(snapshot, expression, np.flatnonzero(mask).tolist(), others, choice)

    @property
    def manifests(self) -> list[Manifest]:
        """The manifests that can match."""
        return [self.snapshot.manifests[at] for at in self.positions]

    @property
    def asks_for_values(self) -> bool:
        """Whether Bloom filters help the filter."""
        return self.expression is not None and asks_for_values(self.expression)

    def files(self, decoded: Sequence[pa.Table]) -> pa.Table:
        """Return the snapshot's files in `decoded`, which has the rows of `manifests`."""
        if not decoded:
            schema = inventory_schema(self.snapshot.data_schema, self.snapshot.partition_schema)
            return schema.empty_table()
        if self.choice is not None:
            decoded = list(map(self.choice.marked, self.positions, decoded))
        files = merge_files(decoded, [manifest.removed for manifest in self.manifests])
        return _without_evidence(files, columns_with_defaults(self.snapshot.data_schema))


def columns_with_defaults(schema: pa.Schema) -> frozenset[str]:
    """Return the columns that have a default in files that lack them, and are found by name.

    An inventory says that all values in such files are null.
    """
    # Iceberg's manifests say nothing about columns that a file lacks.
    return frozenset(
        field.name
        for field in schema
        if DEFAULT in (field.metadata or {}) and FIELD_ID not in field.metadata
    )


def columns_beside_partitions(expression: Expression, snapshot: Snapshot) -> list[str]:
    """Return the columns of a filter that are not partition columns."""
    return [name for name in columns_of(expression) if name not in snapshot.partition_schema.names]


def types_of(snapshot: Snapshot) -> dict[str, pa.DataType]:
    """Return the types of a snapshot's columns by name, partition columns last."""
    return {field.name: field.type for field in [*snapshot.data_schema, *snapshot.partition_schema]}


T = TypeVar("T")
# Bodies of manifests that are in memory together while some of their columns are read.
_BODIES_AT_A_TIME = 32


class DecodedManifests:
    """Decoded manifests, which never change; the least recently used are dropped first.

    Args:
        max_bytes: Most bytes of them.
    """

    def __init__(self, max_bytes: int) -> None:
        self._lock = threading.Lock()
        self._tables: LRUCache[Hashable, pa.Table] = LRUCache(max_bytes, getsizeof=_size)

    @property
    def size_bytes(self) -> int:
        """Bytes of those that are kept."""
        return int(self._tables.currsize)

    def get(self, key: Hashable) -> pa.Table | None:
        """Return the rows of a manifest if they are kept; any thread may call it."""
        with self._lock:
            return self._tables.get(key)

    def keep(self, key: Hashable, files: pa.Table) -> None:
        """Keep the rows of a manifest, unless they alone are too many; any thread may call it."""
        if _size(files) <= self._tables.maxsize:
            with self._lock:
                self._tables[key] = files


class ManifestReader:
    """Fetches and decodes manifests, and caches decoded ones, which never change.

    Args:
        snapshots: The store of manifests.
        runner: Decodes them in threads.
        max_bytes: Most bytes of decoded manifests to cache.
        meters: Count hits and misses of the cache.

    Attributes:
        decoded: The cache, which others may use, too.
    """

    def __init__(
        self,
        snapshots: SnapshotStore,
        runner: Runner,
        max_bytes: int,
        meters: Meters = UNMEASURED,
    ) -> None:
        self._snapshots = snapshots
        self._runner = runner
        self.decoded = DecodedManifests(max_bytes)
        self._meters = meters
        meters.gauge("manifest_cache_bytes", lambda: self.decoded.size_bytes)

    async def scan(
        self,
        table: str,
        snapshot: Snapshot,
        expression: Callable[[], Expression | None],
        work: Callable[[SnapshotScan, pa.Table], T],
        *,
        choice: Choice | None = None,
        bloom: bool = False,
        excerpts: bool = False,
        check: Checkpoint = lambda: None,
    ) -> T:
        """Work on the files of a snapshot that can match a filter, in a thread.

        Args:
            table: Name of the table.
            snapshot: A snapshot of the table.
            expression: Returns the filter, or None for all files; called in a thread.
            work: Makes the result from the scan and its files; called in a thread.
            choice: The partitions whose files are wanted. Files of others may be among those that
                `work` gets: their manifest is read for other files. None means all.
            bloom: Whether Bloom filters are wanted, if they help the filter.
            excerpts: Whether `EXTRA_FIELDS` are wanted.
            check: Called between manifests that are decoded.
        """

        def look() -> tuple[SnapshotScan, list[T]]:
            scan = SnapshotScan.of(snapshot, expression(), choice)
            manifests = scan.manifests
            with_bloom = bloom and scan.asks_for_values
            at_hand = self.at_hand(snapshot, manifests, bloom=with_bloom, excerpts=excerpts)
            if len(at_hand) < len(manifests):
                return scan, []
            self._meters.manifests(hits=len(at_hand), misses=0)
            # A second trip to a thread and back would take as long as a small plan.
            decoded = [at_hand[manifest.manifest_id] for manifest in manifests]
            return scan, [work(scan, scan.files(decoded))]

        scan, done = await self._runner.run(look)
        if done:
            return done[0]
        decoded = await self.read(
            table,
            snapshot,
            scan.manifests,
            bloom=bloom and scan.asks_for_values,
            excerpts=excerpts,
            check=check,
        )
        return await self._runner.run(lambda: work(scan, scan.files(decoded)))

    async def read(
        self,
        table: str,
        snapshot: Snapshot,
        manifests: Sequence[Manifest],
        *,
        bloom: bool,
        excerpts: bool = False,
        check: Checkpoint = lambda: None,
    ) -> list[pa.Table]:
        """Return the rows of some of a snapshot's manifests, in the order given.

        They include rows that the snapshot no longer has.

        Args:
            table: Name of the table.
            snapshot: The snapshot that has the manifests.
            manifests: The manifests to read.
            bloom: Whether Bloom filters are wanted.
            excerpts: Whether `EXTRA_FIELDS` are wanted.
            check: Called between manifests.
        """
        by_id = self.at_hand(snapshot, manifests, bloom=bloom, excerpts=excerpts)
        bloom = bloom and bool(snapshot.bloom_columns)
        missing = [manifest for manifest in manifests if manifest.manifest_id not in by_id]
        self._meters.manifests(hits=len(by_id), misses=len(missing))
        if missing:
            bodies = await self._snapshots.bodies(table, snapshot, missing)

            def decode() -> None:
                for manifest, body in zip(missing, bodies, strict=True):
                    check()
                    by_id[manifest.manifest_id] = decode_manifest(
                        body, bloom=bloom, excerpts=excerpts
                    )

            await self._runner.run(decode)
            for manifest in missing:
                key = manifest.manifest_id, bloom, excerpts
                self.decoded.keep(key, by_id[manifest.manifest_id])
        return [by_id[manifest.manifest_id] for manifest in manifests]

    async def read_columns(
        self,
        table: str,
        snapshot: Snapshot,
        manifests: Sequence[Manifest],
        columns: Collection[str],
        work: Callable[[Manifest, pa.Table], T],
        check: Checkpoint = lambda: None,
    ) -> list[T]:
        """Work on some columns of some of a snapshot's manifests, in a thread; nothing is cached.

        Args:
            table: Name of the table.
            snapshot: The snapshot that has the manifests.
            manifests: The manifests to read, a few at a time.
            columns: The columns wanted; there may be others.
            work: Makes a result of each manifest and its rows, including removed ones.
            check: Called between manifests.
        """
        results: list[T] = []
        for begin in range(0, len(manifests), _BODIES_AT_A_TIME):
            some = manifests[begin : begin + _BODIES_AT_A_TIME]
            at_hand = self._any_at_hand(some)
            missing = [manifest for manifest in some if manifest.manifest_id not in at_hand]
            self._meters.manifests(hits=len(at_hand), misses=len(missing))
            bodies = await self._snapshots.bodies(table, snapshot, missing) if missing else []
            body_of = {one.manifest_id: body for one, body in zip(missing, bodies, strict=True)}

            def work_on(
                some: Sequence[Manifest],
                at_hand: dict[str, pa.Table],
                body_of: dict[str, bytes],
            ) -> list[T]:
                of_some = []
                for manifest in some:
                    check()
                    files = at_hand.get(manifest.manifest_id)
                    if files is None:
                        files = decode_manifest(body_of[manifest.manifest_id], columns=columns)
                    of_some.append(work(manifest, files))
                return of_some

            results += await self._runner.run(partial(work_on, some, at_hand, body_of))
        return results

    def _any_at_hand(self, manifests: Sequence[Manifest]) -> dict[str, pa.Table]:
        at_hand = {}
        for manifest in manifests:
            for bloom, excerpts in product((False, True), repeat=2):
                files = self.decoded.get((manifest.manifest_id, bloom, excerpts))
                if files is not None:
                    at_hand[manifest.manifest_id] = files
                    break
        return at_hand

    def at_hand(
        self,
        snapshot: Snapshot,
        manifests: Sequence[Manifest],
        *,
        bloom: bool,
        excerpts: bool = False,
    ) -> dict[str, pa.Table]:
        """Return the rows of those manifests that are cached, by id; any thread may call it."""
        bloom = bloom and bool(snapshot.bloom_columns)
        entries = {
            manifest.manifest_id: self.decoded.get((manifest.manifest_id, bloom, excerpts))
            for manifest in manifests
        }
        return {manifest_id: table for manifest_id, table in entries.items() if table is not None}


def _size(files: pa.Table) -> int:
    return int(files.nbytes)


def _without_evidence(files: pa.Table, columns: Collection[str]) -> pa.Table:
    """Return an inventory without statistics and Bloom filters of some columns."""
    if not columns:
        return files
    for name in ("stats", "bloom"):
        at = files.schema.get_field_index(name)
        if at < 0:
            continue
        values = files.column(at).combine_chunks()
        fields = [field for field in values.type if field.name not in columns]
        parts = [values.field(values.type.get_field_index(field.name)) for field in fields]
        field = files.schema.field(at).with_type(pa.struct(fields))
        files = files.set_column(at, field, make_struct(parts, fields, len(values)))
    return files
