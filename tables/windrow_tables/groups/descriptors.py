"""Descriptors: what tasks are told of their groups, as bytes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from windrow_tables.executor.reading import CACHED_ON_KEY, DELETES_KEY, RESIDUAL_KEY


@dataclass(frozen=True, slots=True, kw_only=True)
class Descriptor:
    """What the driver sends to one task.

    Attributes:
        content: The task's work, as bytes.
        hosts: Where the task should run, best first; empty for anywhere. Only those of
            `hosts_to_prefer` count.
    """

    content: bytes
    hosts: tuple[str, ...]


def descriptors_of(groups: pa.Table) -> list[Descriptor]:
    """Return one descriptor per group, in order: its splits as a compressed Arrow stream.

    The residual filter, the host that caches the files and the delete files are in the stream's
    metadata.

    Args:
        groups: The groups of a plan, as the coordinator streams them.
    """
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    descriptors = []
    # A coordinator that does not cache has no such column.
    has_caches = "cached_on" in groups.column_names
    for hosts, cached_on, residual, deletes, splits in zip(
        groups["hosts"].to_pylist(),
        groups["cached_on"].to_pylist() if has_caches else [None] * len(groups),
        groups["residual_filter"].to_pylist(),
        _delete_texts(groups),
        groups["splits"],
        strict=True,
    ):
        batch = pa.RecordBatch.from_struct_array(splits.values)
        beside = {RESIDUAL_KEY: residual, CACHED_ON_KEY: cached_on, DELETES_KEY: deletes}
        metadata = {key: text.encode() for key, text in beside.items() if text is not None}
        schema = batch.schema.with_metadata(metadata)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, schema, options=options) as writer:
            writer.write_batch(batch.replace_schema_metadata(metadata))
        content = sink.getvalue().to_pybytes()
        descriptors.append(Descriptor(content=content, hosts=tuple(hosts or ())))
    return descriptors


def _delete_texts(groups: pa.Table) -> Sequence[str | None]:
    """Return for each group its delete files as JSON; None where it has none."""
    if "delete_files" not in groups.column_names:
        return [None] * len(groups)
    return [
        json.dumps([list(file.values()) for file in files]) if files else None
        for files in groups["delete_files"].to_pylist()
    ]
