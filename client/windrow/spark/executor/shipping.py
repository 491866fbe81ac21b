"""How the reader travels: its code by value, unpacked once in each Python worker."""

from __future__ import annotations

import gc
import pickle
import sys
import types
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import pyarrow as pa

# From descriptors to rows, in the forms in which Spark hands over the ones and takes the others.
Task = Callable[[Iterable[Any]], Iterator[Any]]
# Adds up what tasks count.
Count = Callable[[Mapping[str, int]], None]

# What Spark calls it in its plans.
READER_NAME = "windrow_reader"


def shipped(packed: bytes, digest: str, spec: bytes, count: Count | None = None) -> Task:
    """Return a function that is small to send and makes the packed one read.

    Unpacking the code takes 10 ms, and a whole task that reads one file hardly more. Spark unpacks
    what it runs in every task, but reuses its Python workers: so they keep the code.

    Args:
        packed: What takes the spec and returns a task, pickled by value and compressed by zlib.
        digest: Tells it apart from the code of another version.
        spec: What it takes.
        count: Called once in each task that ends, with what it has read.
    """

    def run(descriptors: Iterable[Any]) -> Iterator[Any]:
        # Code pickled by value has no module whose globals would outlive the task.
        home = sys.modules.setdefault("_windrow_readers", types.ModuleType("_windrow_readers"))
        readers: dict[str, Callable[[bytes, Counter[str]], Task]] = home.__dict__.setdefault(
            "readers", {}
        )
        if digest not in readers:
            readers[digest] = pickle.loads(zlib.decompress(packed))
            if len(readers) == 1:
                # Spark's workers collect garbage after every task. With all that pandas, pyarrow
                # and this have loaded, that would take 40 ms, and find nothing in it.
                gc.freeze()
        counts: Counter[str] = Counter()
        yield from readers[digest](spec, counts)(descriptors)
        if count is not None:
            count(counts)

    run.__name__ = READER_NAME
    return run


class PartitionReader(NamedTuple):
    """Reads partitions of Spark's Python data source, whose values are descriptors of groups.

    Attributes:
        packed: As `shipped` takes it.
        digest: Likewise.
        spec: Likewise.
    """

    packed: bytes
    digest: str
    spec: bytes

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """Return the rows of a group; none where there is no group."""
        if partition.value is None:
            return iter(())
        descriptor = pa.record_batch([pa.array([partition.value], pa.binary())], ["content"])
        return shipped(*self)([descriptor])
