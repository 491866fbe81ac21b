"""How the reader travels: its code by value, unpacked once in each Python worker."""

from __future__ import annotations

import gc
import pickle
import socket
import sys
import types
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import pyarrow as pa

# Turns descriptors into rows; Spark passes the former and takes the latter in its own forms.
Task = Callable[[Iterable[Any]], Iterator[Any]]
# Adds up the counts of tasks.
Count = Callable[[Mapping[str, int]], None]

# Where to name the Python of tasks.
_WHERE = (
    "on every host, in the environment variable PYSPARK_PYTHON or the setting spark.pyspark.python "
    "before the session starts"
)
# How to give tasks their packages.
REMEDY = f"install numpy and pyarrow for it, or name a Python that has them, {_WHERE}"
# How to give tasks the driver's version of Python.
REMEDY_OF_VERSION = f"name a Python of the driver's version, with numpy and pyarrow, {_WHERE}"

# The reader's name in Spark's plans.
READER_NAME = "windrow_reader"


def shipped(code: bytes, digest: str, spec: bytes, count: Count | None = None) -> Task:
    """Return a function that is cheap to unpickle, and that unpacks and runs the packed one.

    Unpacking the code takes 10 ms, and a whole task that reads one file hardly more. Spark unpacks
    its function in every task but reuses its Python workers, so the workers keep the code.

    Args:
        code: A function that takes the spec and returns a task, pickled by value and compressed
            by zlib.
        digest: Tells it apart from the code of another version.
        spec: The spec that it takes.
        count: Called once at the end of each task, with the counts of what it has read.
    """

    def run(descriptors: Iterable[Any]) -> Iterator[Any]:
        # Code pickled by value has no module whose globals would outlive the task.
        home = sys.modules.setdefault("_windrow_readers", types.ModuleType("_windrow_readers"))
        readers: dict[str, Callable[[bytes, Counter[str]], Task]] = home.__dict__.setdefault(
            "readers", {}
        )
        if digest not in readers:
            try:
                readers[digest] = pickle.loads(zlib.decompress(code))
            except ModuleNotFoundError as error:
                where = f"{sys.executable} on {socket.gethostname()}"
                text = f"{error}: {where}, which runs this task, lacks it; {REMEDY}"
                raise ModuleNotFoundError(text, name=error.name) from None
            if len(readers) == 1:
                # Spark's workers collect garbage after every task. Among all the objects of pandas,
                # pyarrow and this reader, that would take 40 ms and find nothing.
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
        code: As for `shipped`.
        digest: As for `shipped`.
        spec: As for `shipped`.
    """

    code: bytes
    digest: str
    spec: bytes

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """Return the rows of a group; none if there is no group."""
        if partition.value is None:
            return iter(())
        descriptor = pa.record_batch([pa.array([partition.value], pa.binary())], ["content"])
        return shipped(*self)([descriptor])
