"""Uses of a host's cache by tasks, to be run in separate processes."""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable

import pyarrow as pa

from windrow_tables.host_cache.opening import open_cache
from windrow_tables.host_cache.uses import CacheUse


def read_table(location: str, group_file: str, buffered: int, file_limit: int | None) -> None:
    """Read a table of one column `a` as a task; write the number and sum of the rows.

    Args:
        location: Location of the table.
        group_file: Arrow file of its files.
        buffered: Size in bytes of the largest file to be read whole into memory.
        file_limit: Maximum size in bytes of files that this process writes.
    """
    from windrow_tables.executor.reading import read_group
    from windrow_tables.executor.spec import ReadLimits, ReadSpec

    if file_limit is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (file_limit, file_limit))
    spec = ReadSpec(
        table="events",
        location=location,
        data=pa.schema([("a", pa.int64())]),
        hidden=pa.schema([]),
        partition=pa.schema([]),
        output=("a",),
        limits=ReadLimits(max_buffered_file_bytes=buffered, max_decoded_at_once_bytes=buffered),
    )
    group = pa.ipc.open_file(group_file).read_all().to_batches()[0]
    values = [
        row for batch in read_group(spec, group, None, "here") for row in batch["a"].to_pylist()
    ]
    sys.stdout.write(json.dumps([len(values), sum(values)]))


def write_half(folder: str, key: str) -> None:
    """Write half a file into a cache, print `written`, and hang."""

    def copy(write: Callable[[bytes], object]) -> None:
        write(b"half")
        sys.stdout.write("written")
        sys.stdout.flush()
        time.sleep(600)

    CacheUse(open_cache(folder)).open(key, 8, copy)
