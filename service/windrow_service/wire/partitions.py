"""The partitions of a snapshot as an Arrow IPC stream, and as pages of JSON."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic_core import to_json

from windrow_core.files.arrays import flat, make_struct
from windrow_service.planner.pruning.partitions import FIGURES
from windrow_service.usecases.ports import Page
from windrow_service.wire.groups import json_texts

# Most bytes of the values in a page of several partitions; texts may be long.
_PAGE_BYTES = 4 * 2**20


def stream_of(partitions: pa.Table) -> bytes:
    """Return partitions as a stream; a partition's row is its number."""
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, partitions.schema, options=options) as stream:
        stream.write_table(partitions)
    return bytes(sink.getvalue())


def page_of(partitions: pa.Table, start: int, count: int) -> Page[bytes]:
    """Return a page of at most `count` partitions as JSON objects; fewer if they are long.

    Args:
        partitions: The partition columns, then `FIGURES`.
        start: Number of the first partition.
        count: Most partitions.
    """
    rows = partitions.slice(start, count)
    columns = [flat(column) for column in rows.columns]
    values = columns[: -len(FIGURES)]
    fields = list(rows.schema)[: len(values)]
    parts: list[pa.Array | str] = [
        '{"number":',
        pa.array(np.arange(start, start + len(rows))).cast(pa.string()),
        ',"partition":',
        json_texts(make_struct(values, fields, len(rows))),
    ]
    for name, column in zip(FIGURES, columns[len(values) :], strict=True):
        parts += [f',"{name}":', json_texts(column)]
    texts = pc.binary_join_element_wise(*parts, "}", "")
    ends = np.cumsum(pc.binary_length(texts).to_numpy())
    fitting = max(int(np.searchsorted(ends, _PAGE_BYTES, side="right")), 1)
    objects: list[bytes] = texts.slice(0, fitting).cast(pa.binary()).to_pylist()
    return Page(objects, more=start + len(objects) < len(partitions))


def page_json(snapshot_id: int, objects: Sequence[bytes], next_page_token: str | None) -> bytes:
    """Return a page as JSON."""
    fields = to_json({"snapshot_id": snapshot_id, "next_page_token": next_page_token})
    return b"".join((fields[:-1], b',"partitions":[', b",".join(objects), b"]}"))
