"""The groups of a plan as one Arrow IPC stream: what is stored, streamed and paged.

One row is one group. A last, empty batch carries the end marker in its metadata, so that a
truncated stream is never taken for a small plan. The answer to a request for a plan has the plan
itself in the schema's metadata.
"""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from pydantic_core import to_json

from windrow_core.files.arrays import flat
from windrow_service.filters.tree import to_tree
from windrow_service.planner.errors import FiltersTooLongError
from windrow_service.planner.packing.deletes import GroupDeletes
from windrow_service.planner.packs import NO_PACK
from windrow_service.planner.plan import GroupedSplits
from windrow_service.planner.splits import NO_BUCKET, NO_HOST, Ints
from windrow_service.usecases.plans.ports import PlanBody, PlanChunk
from windrow_service.usecases.ports import Checkpoint

# Characters that JSON escapes; Arrow strings cannot contain surrogates.
_ESCAPED = r'["\\\x00-\x1f]'


# A column at a time: converting each value through a Python object would hold the interpreter's
# lock, and delay every other request, for 0.2 s if a page has 100,000 splits.
def json_texts(column: pa.Array) -> pa.Array:
    """Return each value of a column as JSON; null as `null`.

    Integers, strings, lists and structs are encoded as whole columns. For other types, each
    distinct value is encoded once, as pydantic does; these are the types of partition columns,
    which have few distinct values.
    """
    if pt.is_struct(column.type):
        texts = _objects(column)
    elif pt.is_list(column.type):
        texts = _lists(column)
    elif pt.is_integer(column.type):
        texts = column.cast(pa.string())
    elif (
        pt.is_string(column.type) and not pc.any(pc.match_substring_regex(column, _ESCAPED)).as_py()
    ):
        texts = pc.binary_join_element_wise('"', column, '"', "")
    else:
        encoded = column.dictionary_encode()
        distinct = [
            to_json(value, inf_nan_mode="strings").decode()
            for value in encoded.dictionary.to_pylist()
        ]
        texts = pa.array(distinct, pa.string()).take(encoded.indices)
    filled = texts.fill_null("null")
    return pc.if_else(column.is_valid(), filled, "null") if column.null_count else filled


def _objects(column: pa.StructArray) -> pa.Array:
    parts: list[pa.Array | str] = []
    for at, field in enumerate(column.type):
        name = to_json(field.name).decode()
        parts += [f"{',' if at else '{'}{name}:", json_texts(column.field(at))]
    if not parts:
        return pa.repeat(pa.scalar("{}"), len(column))
    return pc.binary_join_element_wise(*parts, "}", "")


def _lists(column: pa.ListArray) -> pa.Array:
    inner = pa.ListArray.from_arrays(_from_zero(column), json_texts(column.flatten()))
    return pc.binary_join_element_wise("[", pc.binary_join(inner, ","), "]", "")


def _from_zero(column: pa.ListArray) -> pa.Array:
    first = column.offsets[0]
    return pc.subtract(column.offsets, first)


END_MARKER = b"windrow:end"
PLAN_KEY = b"windrow:plan"
# A batch has whole groups with up to about this many splits.
SPLITS_PER_BATCH = 65_536

# Most bytes of the residual filters of all groups of a plan.
MAX_FILTER_BYTES = 256 * 2**20
# Most bytes of filters and paths in a page of several groups; these may be long.
_PAGE_BYTES = 16 * 2**20

# Below this, passing columns to threads takes longer than compressing them.
_FEW_SPLITS = 16_384
# Below this, the same holds for decompressing them.
_FEW_BYTES = 64 * 2**10
_FILE_COLUMNS = ("size_bytes", "mtime_ns", "row_count", "partition")
_DELETE_FILE = ["path", "size_bytes", "mtime_ns"]


class ArrowGroups:
    """`GroupCodec` as an Arrow IPC stream, cut between its messages."""

    def encode(self, groups: GroupedSplits, check: Checkpoint = lambda: None) -> PlanBody:
        """See `GroupCodec.encode`."""
        table = _table_of(groups)
        sink = pa.BufferOutputStream()
        options = pa.ipc.IpcWriteOptions(
            compression="zstd", use_threads=len(groups.splits) > _FEW_SPLITS
        )
        # The schema is written with the first batch.
        ends = [table.schema.serialize().size]
        first_groups: list[int] = []
        with pa.ipc.new_stream(sink, table.schema, options=options) as stream:
            begin = 0
            for end in _batch_ends(groups.offsets):
                check()
                stream.write_batch(table.slice(begin, end - begin))
                ends.append(sink.tell())
                first_groups.append(begin)
                begin = end
            marker = {"groups": len(groups), "splits": len(groups.splits)}
            # Not an empty slice: Arrow would write all splits again for zero groups.
            nothing = pa.RecordBatch.from_pylist([], schema=table.schema)
            stream.write_batch(nothing, custom_metadata={END_MARKER: json.dumps(marker).encode()})
        stream_bytes = sink.getvalue()
        return PlanBody(
            head=stream_bytes.slice(0, ends[0]).to_pybytes(),
            chunks=[
                PlanChunk(
                    first_group=first_group,
                    data=stream_bytes.slice(start, end - start).to_pybytes(),
                )
                for first_group, (start, end) in zip(first_groups, pairwise(ends), strict=True)
            ],
            tail=stream_bytes.slice(ends[-1]).to_pybytes(),
        )

    def read(
        self, head: bytes, chunk: PlanChunk, begin: int, max_groups: int, max_splits: int
    ) -> list[bytes]:
        """See `GroupCodec.read`."""
        options = pa.ipc.IpcReadOptions(use_threads=len(chunk.data) > _FEW_BYTES)
        with pa.ipc.open_stream(head + chunk.data, options=options) as stream:
            batch = stream.read_next_batch()
        rows = batch.slice(begin - chunk.first_group, max_groups)
        splits = np.cumsum(rows["splits"].value_lengths().to_numpy())
        fitting = int(np.searchsorted(splits, max_splits, side="right"))
        fitting = min(fitting, int(np.searchsorted(_text_bytes(rows), _PAGE_BYTES, side="right")))
        return _json(rows.slice(0, max(fitting, 1)))

    def described(self, head: bytes, plan: bytes) -> bytes:
        """See `GroupCodec.described`."""
        schema = pa.ipc.read_schema(pa.py_buffer(head))
        described: bytes = schema.with_metadata({PLAN_KEY: plan}).serialize().to_pybytes()
        return described


def _text_bytes(rows: pa.RecordBatch) -> Ints:
    """Return, for each group, the bytes of the filters and paths of all groups up to it."""
    filters = np.cumsum(pc.binary_length(rows["residual_filter"]).fill_null(0).to_numpy())
    splits = rows["splits"]
    paths = pc.struct_field(splits.flatten(), "path")
    lengths = np.append(0, np.cumsum(pc.binary_length(paths).to_numpy(), dtype=np.int64))
    ends = lengths[_from_zero(splits).to_numpy()[1:]]
    return np.asarray(filters + ends, np.int64)


def _json(rows: pa.RecordBatch) -> list[bytes]:
    # The filter is stored as JSON already.
    residual = rows["residual_filter"].fill_null("null")
    parts: list[pa.Array | str] = []
    for at, name in enumerate(rows.schema.names):
        texts = residual if name == "residual_filter" else json_texts(rows[name])
        parts += [f'{"," if at else "{"}"{name}":', texts]
    objects = pc.binary_join_element_wise(*parts, "}", "")
    groups: list[bytes] = objects.cast(pa.binary()).to_pylist()
    return groups


def _batch_ends(offsets: Ints) -> list[int]:
    ends: list[int] = []
    count = len(offsets) - 1
    while (begin := ends[-1] if ends else 0) < count:
        full = np.searchsorted(offsets, offsets[begin] + SPLITS_PER_BATCH, side="right") - 1
        ends.append(int(max(full, begin + 1)))
    return ends


def _table_of(plan: GroupedSplits) -> pa.RecordBatch:
    files = plan.files.select(["path", *_FILE_COLUMNS]).take(pa.array(plan.splits.file))
    columns = {
        "path": files["path"],
        "start": pa.array(plan.splits.start),
        "length": pa.array(plan.splits.length),
        **{name: files[name] for name in _FILE_COLUMNS},
        "native": plan.native.take(pa.array(plan.splits.file)),
        "grouped": plan.grouped.take(pa.array(plan.splits.file)),
        **dict(zip(("first_block", "block_count"), plan.blocks or (), strict=False)),
    }
    if plan.files["etag"].null_count < len(plan.files):
        columns["etag"] = plan.files["etag"].take(pa.array(plan.splits.file))
    if plan.files["deletes"].null_count < len(plan.files):
        columns["deletes"] = plan.files["deletes"].take(pa.array(plan.splits.file))
    if plan.excerpts is not None:
        columns["excerpt"] = plan.excerpts.column
    if plan.in_packs is not None:
        is_alone = plan.in_packs.pack == NO_PACK
        columns["pack"] = pa.array(plan.in_packs.pack, pa.int32(), mask=is_alone)
        columns["pack_row"] = pa.array(plan.in_packs.first_row, mask=is_alone)
    if plan.deletes is not None:
        numbers = plan.files["first_row_id"]
        columns["first_row_id"] = numbers.take(pa.array(plan.splits.file))
    splits = pa.StructArray.from_arrays(
        [flat(column) for column in columns.values()], names=list(columns)
    )
    names = pa.array(plan.splits.hosts.names, pa.string())
    texts = _filter_texts(plan)
    bucket, cached_on = plan.bucket, plan.cached_on
    workers = pa.array(plan.cached.workers, pa.string())
    deletes = {"delete_files": _delete_files(plan.deletes)} if plan.deletes is not None else {}
    return pa.RecordBatch.from_pydict(
        {
            "group_id": pa.array(np.arange(len(plan)), pa.int32()),
            "bucket": pa.array(bucket, pa.int32(), mask=bucket == NO_BUCKET),
            "hosts": pa.ListArray.from_arrays(
                pa.array(plan.host_offsets, pa.int32()), names.take(pa.array(plan.host_codes))
            ),
            "cached_on": workers.take(pa.array(cached_on, mask=cached_on == NO_HOST)),
            "size_bytes": pa.array(plan.size_bytes),
            "residual_filter": pa.array(texts, pa.string()).take(pa.array(plan.residual)),
            "splits": pa.ListArray.from_arrays(pa.array(plan.offsets, pa.int32()), splits),
            **deletes,
        }
    )


def _filter_texts(plan: GroupedSplits) -> list[str | None]:
    """Return the residual filters as JSON."""
    texts: list[str | None] = []
    size_bytes = 0
    counts = np.bincount(plan.residual, minlength=len(plan.residual_filters)).tolist()
    for filter_, count in zip(plan.residual_filters, counts, strict=True):
        text = None if filter_ is None else json.dumps(to_tree(filter_))
        size_bytes += 0 if text is None else len(text) * count
        if size_bytes > MAX_FILTER_BYTES:
            raise FiltersTooLongError(len(plan), MAX_FILTER_BYTES)
        texts.append(text)
    return texts


def _delete_files(deletes: GroupDeletes) -> pa.ListArray:
    files = deletes.files.take(pa.array(deletes.rows)).select(_DELETE_FILE)
    structs = pa.StructArray.from_arrays([flat(one) for one in files.columns], files.column_names)
    return pa.ListArray.from_arrays(pa.array(deletes.offsets, pa.int32()), structs)
