"""Figures of partitions all of whose files are in packs, so that aggregates need no file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from cachetools import LRUCache

from windrow_core.files.arrays import flat
from windrow_core.files.figures import FIGURE, SPARK_TYPE
from windrow_core.files.types import spark_type
from windrow_service.planner.packs import NO_PACK
from windrow_service.planner.splits import Bools, Ints
from windrow_service.usecases.packs.coverage import TablePacks, UsablePacks
from windrow_service.usecases.snapshots.partitions import PARTITION, PartitionReader
from windrow_service.usecases.snapshots.ports import Snapshot, SnapshotStore
from windrow_service.usecases.snapshots.scans import ManifestReader, columns_with_defaults

# Bytes of answers that are kept.
_MOST_BYTES = 64 * 2**20
# Most figures that are added up for one answer, each of 32 bytes.
_MOST_FIGURES = 10_000_000
# Sums of absolute values below are exact.
_MOST = float(2**62)
# The number of rows of a partition; null unless all its files are in packs.
PACKED_ROWS = "packed_rows"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionFigures:
    """Adds up the figures of the files in packs, for each partition.

    Attributes:
        snapshots: The store of snapshots.
        manifests: Reads the files.
        partitions: Numbers the partitions.
        packs: Finds the packs that may stand for files.
    """

    snapshots: SnapshotStore
    manifests: ManifestReader
    partitions: PartitionReader
    packs: TablePacks
    _answers: LRUCache[object, pa.Table] = field(
        default_factory=lambda: LRUCache(_MOST_BYTES, getsizeof=lambda one: int(one.nbytes))
    )

    async def __call__(self, name: str, snapshot_id: int, columns: Sequence[str]) -> pa.Table:
        """Return `PACKED_ROWS` and the figures of columns, each a `FIGURE`, by number of partition.

        The figures of a column are null where a file is in no pack, or has none for this type; and all
        are null if there would be too many.

        Raises:
            TableNotFoundError: No table has this name.
            SnapshotNotFoundError: The table does not have this snapshot.
            BusyError: Too much is waiting already.
        """
        table, snapshot = await self.snapshots.get(name, snapshot_id)
        usable = await self.packs(table, snapshot)
        count = len(await self.partitions.numbering(name, snapshot))
        if usable is None or count * len(columns) > _MOST_FIGURES:
            return _none(count, columns)
        key = (table.table_id, snapshot.info.snapshot_id, usable.key, *columns)
        earlier = self._answers.get(key)
        if earlier is not None:
            return earlier
        choice = await self.partitions.all_of(name, snapshot)
        bodies = await self.packs.store.figures(list(usable.packs))
        answer = await self.manifests.scan(
            name,
            snapshot,
            lambda: None,
            lambda _, files: _summed(files, count, usable, bodies, _types(snapshot, columns)),
            choice=choice,
        )
        if answer.nbytes <= self._answers.maxsize:
            self._answers[key] = answer
        return answer


def _types(snapshot: Snapshot, columns: Sequence[str]) -> dict[str, str | None]:
    """Return the types of columns as Spark writes them; None if files may have other values."""
    unsure = columns_with_defaults(snapshot.data_schema)
    types = {one.name: spark_type(one.type) for one in snapshot.data_schema}
    return {name: None if name in unsure else types.get(name) for name in columns}


def _none(count: int, columns: Sequence[str]) -> pa.Table:
    none = pa.nulls(count, FIGURE)
    rows = pa.nulls(count, pa.int64())
    return pa.table([rows, *(none for _ in columns)], names=[PACKED_ROWS, *columns])


def _summed(
    files: pa.Table,
    count: int,
    usable: UsablePacks,
    bodies: Mapping[str, bytes],
    types: Mapping[str, str | None],
) -> pa.Table:
    """Return the figures of partitions.

    Args:
        files: The files of a snapshot, each with the number of its partition.
        count: Number of partitions.
        usable: The packs that may stand for files.
        bodies: The figures of packs.
        types: The columns, with their types.
    """
    number = np.asarray(files[PARTITION], np.int64)
    places = usable.coverage.of(files)
    is_packed = (places.pack != NO_PACK) & (np.asarray(files["delete_count"]) == 0)
    lengths = [len(one.rows) for one in usable.coverage.packs]
    at = np.where(is_packed, np.cumsum([0, *lengths])[places.pack] + places.source, 0)
    is_unsure = np.bincount(number[~is_packed], minlength=count) > 0
    rows = np.asarray(files["row_count"].fill_null(0), np.int64)
    columns = [pa.array(_reduced(np.add, number, rows, count, 0), mask=is_unsure)]
    for name, type_ in types.items():
        parts = [
            _part(bodies.get(one.pack_id), name, type_, length)
            for one, length in zip(usable.coverage.packs, lengths, strict=True)
        ]
        figures = pa.concat_arrays(parts).take(pa.array(at))
        columns.append(_column(figures, is_packed, number, count))
    return pa.table(columns, names=[PACKED_ROWS, *types])


def _part(body: bytes | None, name: str, type_: str | None, length: int) -> pa.Array:
    """Return the figures of a column in the files of a pack; nulls if it has none of this type."""
    if body is not None and type_ is not None:
        with pa.ipc.open_stream(body) as stream:
            at = stream.schema.get_field_index(name)
        if at >= 0 and stream.schema.field(at).metadata[SPARK_TYPE] == type_.encode():
            options = pa.ipc.IpcReadOptions(included_fields=[at])
            with pa.ipc.open_stream(body, options=options) as stream:
                return flat(stream.read_all().column(0))
    return pa.nulls(length, FIGURE)


def _column(figures: pa.StructArray, is_packed: Bools, number: Ints, count: int) -> pa.Array:
    is_certain = is_packed & np.asarray(figures.is_valid())
    is_unsure = np.bincount(number[~is_certain], minlength=count) > 0
    of_files = {one.name: figures.field(at) for at, one in enumerate(FIGURE)}
    has_values = is_certain & np.asarray(of_files["least"].is_valid())
    some = number[has_values]
    values = {
        name: np.asarray(one.fill_null(0), np.int64)[has_values] for name, one in of_files.items()
    }
    info = np.iinfo(np.int64)
    least = _reduced(np.minimum, some, values["least"], count, info.max)
    greatest = _reduced(np.maximum, some, values["greatest"], count, info.min)
    sizes = np.abs(values["total"].astype(np.float64))
    is_unsure |= np.bincount(some, weights=sizes, minlength=count) >= _MOST
    counts = _reduced(np.add, some, values["count"], count, 0)
    totals = _reduced(np.add, some, values["total"], count, 0)
    bounds = (pa.array(one, mask=counts == 0) for one in (least, greatest, totals))
    return pa.StructArray.from_arrays(
        [pa.array(counts), *bounds], fields=list(FIGURE), mask=pa.array(is_unsure)
    )


def _reduced(
    ufunc: Any, number: Ints, values: Ints, count: int, empty: int
) -> npt.NDArray[np.int64]:
    results = np.full(count, empty, np.int64)
    ufunc.at(results, number, values)
    return results
