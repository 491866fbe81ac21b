"""Reading one split group, the work of a Spark task."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow_core.files.arrays import array_of, numbers_of
from windrow_core.files.objects.pacing import Pace
from windrow_core.files.objects.requests import Traffic
from windrow_tables.executor.acid import AcidDecoder, DeleteFile
from windrow_tables.executor.batches import bounded
from windrow_tables.executor.caching import files_of
from windrow_tables.executor.decoding import Decoder, splits_of
from windrow_tables.executor.deleted_positions import DeletedPositions
from windrow_tables.executor.early_ends import end_early_in_silence
from windrow_tables.executor.errors import UnsortedFileError
from windrow_tables.executor.filters import columns_of, matching
from windrow_tables.executor.local_times import in_type, is_resolved
from windrow_tables.executor.packing import packed
from windrow_tables.executor.rows import Rows
from windrow_tables.executor.shipping import Task
from windrow_tables.executor.sorting import (
    KeyAt,
    Keys,
    keys_of,
    merge,
    scratch_file,
    scratching,
    sorted_table,
    spilled,
)
from windrow_tables.executor.spec import BARE_ROWS, KIB, ReadSpec, Split

RESIDUAL_KEY = b"windrow:residual"
CACHED_ON_KEY = b"windrow:cached-on"
DELETES_KEY = b"windrow:delete-files"

_MIN_BLOCK_BYTES = 256 * KIB


def read_group(
    spec: ReadSpec,
    splits: pa.RecordBatch,
    residual: Mapping[str, Any] | None,
    cached_on: str | None = None,
    counts: Counter[str] | None = None,
    delete_files: Sequence[DeleteFile] = (),
) -> Generator[pa.RecordBatch, None, None]:
    """Read the splits of one group.

    Args:
        spec: What to read of the table.
        splits: One row per split, with the columns of a plan's splits: `path`, `start`,
            `length`, `size_bytes`, `mtime_ns`, `row_count`, `partition`.
        residual: The residual filter, as a JSON filter tree.
        cached_on: The host whose cache the files belong in; None if they are not cached.
        counts: Counts what is read: `files`, `bytes`, `rows`, `cache_hits`, `delete_files`, and for
            object stores `requests`, `retries`, `waited_ms`.
        delete_files: Files that name deleted rows of the splits' files.

    Yields:
        Batches of `spec.output_schema` within `spec.limits`, none empty. Rows come in the order
        of the splits or, if the table has sort columns, sorted by them.
    """
    counts = Counter() if counts is None else counts
    most_per_s = spec.limits.requests_per_second
    traffic = Traffic(pace=None if most_per_s is None else Pace(most_per_s))
    with ExitStack() as stack:
        files = stack.enter_context(closing(files_of(spec, traffic, cached_on, splits.num_rows)))
        split_list = splits_of(spec, splits)
        deletions = DeletedPositions(spec, split_list, counts) if spec.logged else None
        decoder: Decoder | AcidDecoder = Decoder(spec, files, counts, deletions)
        if spec.names_rows:
            decoder = AcidDecoder(spec, files, delete_files, splits, counts)
            stack.enter_context(closing(decoder))
        group = _Group(spec, split_list, splits.column("partition"), residual, decoder)
        tables = group.merged() if spec.sort else group.concatenated()
        limits = spec.limits
        for batch in bounded(
            (table.select(spec.output_schema.names) for table in tables),
            limits.max_batch_rows,
            limits.max_batch_bytes,
        ):
            counts["rows"] += batch.num_rows
            yield batch
        # If several groups share a file, its first split counts it.
        counts["files"] += int(np.count_nonzero(numbers_of(splits.column("start")) == 0))
        counts["bytes"] += pc.sum(splits.column("length"), min_count=0).as_py()
        counts["cache_hits"] += files.hits
        counts["requests"] += traffic.requests
        counts["retries"] += traffic.retries
        counts["waited_ms"] += int(traffic.waited_s * 1_000)


def task_of(packed_spec: bytes, counts: Counter[str]) -> Task:
    """Return the function that `mapInArrow` runs on the descriptors of a task's groups.

    Args:
        packed_spec: What to read of the table, from `ReadSpec.packed`.
        counts: Counts what is read; see `read_group`.
    """
    end_early_in_silence()
    spec = ReadSpec.unpacked(packed_spec)

    def read(descriptors: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in descriptors:
            for descriptor in batch.column(0):
                yield from read_descriptor(spec, descriptor.as_buffer(), counts)

    return read


def packing_task_of(packed_spec: bytes, counts: Counter[str]) -> Task:
    """Return the function that turns descriptors of a task's groups into packed batches.

    Args:
        packed_spec: What to read of the table, from `ReadSpec.packed`.
        counts: Counts what is read; see `read_group`.
    """
    end_early_in_silence()
    spec = ReadSpec.unpacked(packed_spec)

    def read(descriptors: Iterable[bytes]) -> Iterator[bytes]:
        for descriptor in descriptors:
            yield from map(packed, read_descriptor(spec, pa.py_buffer(descriptor), counts))

    return read


def read_descriptor(
    spec: ReadSpec, descriptor: pa.Buffer, counts: Counter[str]
) -> Iterator[pa.RecordBatch]:
    """Read the group of a descriptor; see `read_group`.

    Args:
        spec: What to read of the table.
        descriptor: The content that `windrow_tables.groups.descriptors` gives a descriptor.
        counts: Counts what is read.
    """
    with pa.ipc.open_stream(descriptor) as stream:
        metadata = stream.schema.metadata or {}
        splits = stream.read_next_batch()
    residual, cached_on = metadata.get(RESIDUAL_KEY), metadata.get(CACHED_ON_KEY)
    deletes = json.loads(metadata.get(DELETES_KEY, b"[]"))
    batches = read_group(
        spec,
        splits,
        json.loads(residual) if residual else None,
        cached_on.decode() if cached_on else None,
        counts,
        [DeleteFile(*file) for file in deletes],
    )
    return _timed(batches, counts)


def _timed(
    batches: Generator[pa.RecordBatch, None, None], counts: Counter[str]
) -> Iterator[pa.RecordBatch]:
    """Yield batches, and count the time that they take without what is done with them."""
    with closing(batches):
        while True:
            begin = time.perf_counter_ns()
            batch = next(batches, None)
            counts["read_us"] += (time.perf_counter_ns() - begin) // 1_000
            if batch is None:
                return
            yield batch


class _Group:
    """The splits of one group, and how they are read."""

    def __init__(
        self,
        spec: ReadSpec,
        splits: Sequence[Split],
        partition: pa.StructArray,
        residual: Mapping[str, Any] | None,
        decoder: Decoder | AcidDecoder,
    ) -> None:
        self._spec = spec
        self._splits = splits
        self._residual = residual
        self._decoder = decoder
        names = {*spec.output, *(key.name for key in spec.sort), *columns_of(residual)}
        fields = [field for field in spec.partition if field.name in names]
        self._partition = {
            field.name: in_type(partition.field(field.name), field.type, spec.zone)
            for field in fields
        }
        # Residual filters compare local times, as the coordinator does.
        self._local_times = {
            field.name: partition.field(field.name)
            for field in fields
            if is_resolved(partition.field(field.name).type, field.type)
        }

    def concatenated(self) -> Iterator[pa.Table]:
        """Yield the splits' rows one after the other."""
        limits = self._spec.limits
        for rows in self._decode(self._splits, limits.max_batch_bytes):
            yield self._finish(rows)[0]

    def merged(self) -> Iterator[pa.Table]:
        """Yield the splits' rows sorted by the table's sort columns.

        Small files are sorted together in memory, in runs; large files must already be sorted.
        """
        limits = self._spec.limits
        small = [split for split in self._splits if self._decoder.is_small(split)]
        large = [split for split in self._splits if not self._decoder.is_small(split)]
        block_bytes = max(_MIN_BLOCK_BYTES, limits.max_run_bytes // max(len(large), 1))
        sources = [self._large(split, block_bytes) for split in large]
        with ExitStack() as files:
            last_run: pa.Table | None = None
            for run in self._runs(small):
                if last_run is not None:
                    with scratching():
                        file = files.enter_context(scratch_file())
                        stream = spilled(last_run, file, limits.max_batch_rows, _MIN_BLOCK_BYTES)
                    sources.append(stream)
                last_run = run
            if last_run is not None:
                sources.append(iter([last_run]))
            yield from merge(sources, self._spec.sort)

    def _runs(self, splits: Sequence[Split]) -> Iterator[pa.Table]:
        """Yield sorted tables of at most about `max_run_bytes`, from small files."""
        limits = self._spec.limits
        tables: list[pa.Table] = []
        keys: list[Keys] = []
        run_bytes = 0
        for rows in self._decode(splits, limits.max_batch_bytes):
            table, origin = self._finish(rows)
            if not table.num_rows:
                continue
            tables.append(table)
            keys.append(keys_of(table, self._spec.sort))
            self._require_sorted(keys[-1], origin)
            run_bytes += table.nbytes
            if run_bytes > limits.max_run_bytes:
                yield sorted_table(tables, keys)
                tables, keys, run_bytes = [], [], 0
        if tables:
            yield sorted_table(tables, keys)

    def _large(self, split: Split, block_bytes: int) -> Iterator[pa.Table]:
        """Yield the rows of one split in blocks, and make sure that they are sorted."""
        last: KeyAt | None = None
        for rows in self._decode([split], block_bytes):
            table, origin = self._finish(rows)
            if not table.num_rows:
                continue
            keys = keys_of(table, self._spec.sort)
            self._require_sorted(keys, origin)
            if last is not None and keys.at(0) < last:
                raise self._unsorted(split)
            last = keys.at(table.num_rows - 1)
            yield table

    def _decode(self, splits: Sequence[Split], max_bytes: int) -> Iterator[Rows]:
        return self._decoder.decode(splits, self._spec.limits.max_batch_rows, max_bytes)

    def _finish(self, rows: Rows) -> tuple[pa.Table, np.ndarray[Any, np.dtype[np.int64]]]:
        """Add the partition columns and apply the filter.

        Returns:
            The remaining rows, and for each the ordinal of its split.
        """
        origin = rows.origins()
        table = rows.table
        at = array_of(origin)
        for name, values in self._partition.items():
            # A table without columns has no rows, so the first column makes a table of its own.
            column = values.take(at)
            table = (
                table.append_column(name, column) if table.num_columns else pa.table({name: column})
            )
        if self._residual is not None:
            of_filter = table
            for name, values in self._local_times.items():
                place = table.schema.get_field_index(name)
                of_filter = of_filter.set_column(place, name, values.take(at))
            mask = matching(self._residual, of_filter)
            table = table.filter(mask)
            origin = origin[np.asarray(mask.fill_null(False))]
        if not self._spec.output:
            table = pa.table([pa.nulls(len(origin), pa.bool_())], schema=BARE_ROWS)
        return table, origin

    def _require_sorted(self, keys: Keys, origin: np.ndarray[Any, np.dtype[np.int64]]) -> None:
        # The order may break between two files: merging restores it.
        wrong = keys.falls() & (origin[1:] == origin[:-1])
        if wrong.any():
            raise self._unsorted(self._splits[int(origin[int(wrong.argmax())])])

    def _unsorted(self, split: Split) -> UnsortedFileError:
        return UnsortedFileError(split.path, tuple(key.name for key in self._spec.sort))
