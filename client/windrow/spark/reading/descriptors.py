"""Descriptors: what the driver sends to a task about the group that it reads."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from windrow.spark.executor.reading import CACHED_ON_KEY, RESIDUAL_KEY


@dataclass(frozen=True, slots=True, kw_only=True)
class Descriptor:
    """One group, ready to be sent.

    Attributes:
        content: Its splits as a compressed Arrow stream, with the residual filter beside, and the
            host that caches its files.
        hosts: Where its task should run, best first; empty for anywhere.
    """

    content: bytes
    hosts: tuple[str, ...]


def descriptors_of(groups: pa.Table) -> list[Descriptor]:
    """Return one descriptor per group, in order.

    Args:
        groups: The groups of a plan, as the coordinator streams them.
    """
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    descriptors = []
    # A coordinator that does not cache has no such column.
    cached = "cached_on" in groups.column_names
    for hosts, cached_on, residual, splits in zip(
        groups["hosts"].to_pylist(),
        groups["cached_on"].to_pylist() if cached else [None] * len(groups),
        groups["residual_filter"].to_pylist(),
        groups["splits"],
        strict=True,
    ):
        batch = pa.RecordBatch.from_struct_array(splits.values)
        beside = {RESIDUAL_KEY: residual, CACHED_ON_KEY: cached_on}
        metadata = {key: text.encode() for key, text in beside.items() if text is not None}
        schema = batch.schema.with_metadata(metadata)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, schema, options=options) as writer:
            writer.write_batch(batch.replace_schema_metadata(metadata))
        content = sink.getvalue().to_pybytes()
        descriptors.append(Descriptor(content=content, hosts=tuple(hosts or ())))
    return descriptors
