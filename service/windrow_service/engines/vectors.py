"""Deletion vectors as Iceberg has them: blobs of a Puffin file, and a manifest that names them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow_core.files.arrays import flat
from windrow_service.avro import encoding
from windrow_service.engines.columns import TableColumns
from windrow_service.engines.entry_schemas import entry_schema
from windrow_service.engines.manifests import (
    VECTOR_SEQUENCE,
    ListedManifest,
    UnfitFileError,
    absolute_paths,
    entry_head,
    header,
    listed,
    no_sizes,
    partition_values,
)
from windrow_service.planner.pruning.bounds import Ints

_MAGIC = b"PFA1"
_NO_FLAGS = bytes(4)
# A vector has its length before it, and a checksum behind it.
_FRAME_BYTES = 8
# The id of the column of paths in files of deleted positions.
_PATH_ID = 2147483546
_POSITION_DELETES = 1


def marked(files: pa.Table) -> pa.Table:
    """Return the files of which a deletion vector names rows, with it alone as `deletes`.

    Args:
        files: Files of a table without other deletes, with the columns `path` and `deletes`.

    Raises:
        UnfitFileError: How many rows a vector names is not known.
    """
    some = files.filter(pc.greater(pc.fill_null(pc.list_value_length(files["deletes"]), 0), 0))
    vectors = flat(pc.list_flatten(some["deletes"]))
    counts = pc.struct_field(vectors, "row_count")
    at = int(pc.index(counts.is_null(), True).as_py())
    if at >= 0:
        raise UnfitFileError(
            f"file {some['path'][at].as_py()!r}: the log does not say how many rows its deletion "
            "vector names: rewrite such files (`REORG TABLE … APPLY (PURGE)`)"
        )
    some = some.set_column(some.schema.get_field_index("deletes"), "deletes", vectors)
    return some.filter(pc.greater(counts, 0))


def located(files: pa.Table) -> pa.Table:
    """Return files with a column `vector`: where the Puffin file has theirs, and its rows, or null.

    Args:
        files: All files of a manifest, which `marked` accepts.
    """
    rows = np.arange(len(files))
    some = marked(files.append_column("row", pa.array(rows)))
    offsets, lengths = _places(some)
    vectors = pa.StructArray.from_arrays(
        [
            pa.array(offsets),
            pa.array(lengths),
            flat(pc.struct_field(some["deletes"], "row_count")),
        ],
        ["offset", "length", "row_count"],
    )
    at = pc.index_in(pa.array(rows), flat(some["row"]))
    return files.append_column("vector", vectors.take(at))


def _places(files: pa.Table) -> tuple[Ints, Ints]:
    """Return where the vectors of files begin in a Puffin file, and how long they are."""
    lengths = np.asarray(pc.struct_field(files["deletes"], "length"), np.int64) + _FRAME_BYTES
    return len(_MAGIC) + np.cumsum(lengths) - lengths, lengths


def puffin_file(blobs: Sequence[bytes], files: pa.Table, location: str) -> bytes:
    """Return a Puffin file of deletion vectors.

    Args:
        blobs: The vectors, with their lengths and checksums.
        files: The files whose rows they name, as `marked` returns them.
        location: The table's location.
    """
    paths = absolute_paths(files["path"], location).to_pylist()
    counts = pc.struct_field(files["deletes"], "row_count").to_pylist()
    entries = [
        {
            "type": "deletion-vector-v1",
            "fields": [],
            # Which snapshot has added it, its manifest says.
            "snapshot-id": -1,
            "sequence-number": -1,
            "offset": offset,
            "length": length,
            "properties": {"referenced-data-file": path, "cardinality": str(count)},
        }
        for offset, length, path, count in zip(
            *(numbers.tolist() for numbers in _places(files)), paths, counts, strict=True
        )
    ]
    footer = json.dumps({"blobs": entries}, separators=(",", ":")).encode()
    end = len(footer).to_bytes(4, "little") + _NO_FLAGS + _MAGIC
    return b"".join([_MAGIC, *blobs, _MAGIC, footer, end])


def described_vectors(
    files: pa.Table,
    location: str,
    columns: TableColumns,
    puffin: tuple[str, int],
) -> tuple[bytes, ListedManifest]:
    """Return a manifest of deletion vectors.

    Args:
        files: The files whose rows they name, as `marked` returns them.
        location: The table's location.
        columns: The table's columns.
        puffin: Path and length of the file that holds them.
    """
    offsets, lengths = _places(files)
    counts = np.asarray(pc.struct_field(files["deletes"], "row_count"), np.int64)
    paths = encoding.data(absolute_paths(files["path"], location))
    # PyIceberg finds the file that a vector belongs to by bounds of paths.
    bounds = encoding.optional(encoding.number_map([(_PATH_ID, paths)], len(files)))
    path, size = puffin
    rows = encoding.rows(
        [
            entry_head(VECTOR_SEQUENCE) + encoding.long(_POSITION_DELETES),
            encoding.datum(path.encode()) + encoding.datum(b"PUFFIN"),
            *partition_values(files, columns),
            encoding.longs(counts),
            encoding.long(size),
            no_sizes(len(files)),
            bounds,
            bounds,
            encoding.optional(paths),
            encoding.optional(encoding.longs(offsets)),
            encoding.optional(encoding.longs(lengths)),
        ]
    )
    blocks = (
        rows.slice(begin, encoding.BLOCK_ROWS) for begin in range(0, len(rows), encoding.BLOCK_ROWS)
    )
    schema: dict[str, Any] = entry_schema(columns, are_vectors=True)
    content = encoding.avro_file(schema, header(columns, "deletes"), blocks)
    return content, listed(content, files, columns, int(counts.sum()))
