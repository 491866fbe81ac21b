"""Writing a Hive table with one small Parquet file per partition."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from windrow_demo.processes import run_in_processes

_FOLDERS_PER_CHUNK = 250
# Characters that Hive writes as %XX in folder names.
_UNSAFE = re.compile(r"""[\x00-\x1f"#%'*/:=?\\\x7f{\[\]^]""")


def partition_count(table: pa.Table, partition: Sequence[str]) -> int:
    """Count the folders that `write_hive_table` would make."""
    return len(_bounds(table, partition)) - 1


def write_hive_table(
    folder: Path,
    table: pa.Table,
    partition: Sequence[str],
    on_written: Callable[[int], None],
) -> None:
    """Write one file `part-0.parquet` into each `key=value/…` folder.

    Args:
        folder: Folder of the table; it exists.
        table: Rows, sorted by the partition columns.
        partition: Names of the partition columns; they are not stored in the files.
        on_written: Called with the number of files written since the last call.
    """
    bounds = _bounds(table, partition)
    chunks = [
        bounds[begin : begin + _FOLDERS_PER_CHUNK + 1]
        for begin in range(0, len(bounds) - 1, _FOLDERS_PER_CHUNK)
    ]
    run_in_processes(
        _write_chunk,
        [
            (
                str(folder),
                _to_ipc(table.slice(chunk[0], chunk[-1] - chunk[0])),
                tuple(partition),
                (chunk - chunk[0]).tolist(),
            )
            for chunk in chunks
        ],
        on_written,
    )


def folder_name(values: Sequence[tuple[str, object]]) -> str:
    """Return the relative folder of partition values, escaped as Hive does."""
    return "/".join(f"{_quoted(name)}={_value_text(value)}" for name, value in values)


def _write_chunk(folder: str, ipc: bytes, partition: tuple[str, ...], bounds: list[int]) -> int:
    """Write one file for the rows between each pair of bounds; runs in a worker process."""
    table = pa.ipc.open_stream(ipc).read_all()
    data = table.drop_columns(list(partition))
    keys = table.select(partition).take(bounds[:-1]).to_pylist()
    for key, begin, end in zip(keys, bounds[:-1], bounds[1:], strict=True):
        where = os.path.join(folder, folder_name([(name, key[name]) for name in partition]))
        os.makedirs(where, exist_ok=True)
        pq.write_table(data.slice(begin, end - begin), os.path.join(where, "part-0.parquet"))
    return len(keys)


def _bounds(table: pa.Table, partition: Sequence[str]) -> np.ndarray:
    """Return the first row of each partition, followed by the number of rows."""
    if table.num_rows == 0:
        return np.zeros(1, np.int64)
    begins = np.zeros(table.num_rows, bool)
    begins[0] = True
    for name in partition:
        codes = table[name].combine_chunks().dictionary_encode(null_encoding="encode")
        indices = codes.indices.to_numpy()
        begins[1:] |= indices[1:] != indices[:-1]
    return np.append(np.flatnonzero(begins), table.num_rows)


def _to_ipc(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


def _quoted(text: str) -> str:
    return _UNSAFE.sub(lambda match: f"%{ord(match[0]):02X}", text)


def _value_text(value: object) -> str:
    return "__HIVE_DEFAULT_PARTITION__" if value in (None, "") else _quoted(str(value))
