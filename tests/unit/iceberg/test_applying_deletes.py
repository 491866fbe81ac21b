"""Which deletes apply to which files: the rules of Iceberg's specification, pair by pair."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tests.support.laws import examples
from windrow_service.iceberg.deletes import applying
from windrow_service.iceberg.manifests import PLANNED_DELETES

# A spec, a colon, and values; the spec 0 has no partitions.
_KEYS = st.sampled_from(["0:", '1:"a"', '1:"b"', "1:null", '2:"a"'])
_SEQUENCES = st.integers(0, 4)
# A table may have the same file more than once.
_FILES = st.lists(st.tuples(st.integers(0, 9), _KEYS, _SEQUENCES), max_size=8)
_KINDS = st.sampled_from(["positions", "equality", "vector"])
_DELETES = st.lists(st.tuples(_KINDS, _KEYS, _SEQUENCES, st.none() | st.integers(0, 9)), max_size=8)


def applies(delete: dict[str, Any], file: dict[str, Any], others: list[dict[str, Any]]) -> bool:
    """Return, by the specification, whether a delete applies to a file."""
    is_partition = delete["partition_key"] == file["partition_key"]
    if delete["kind"] == "equality":
        is_wide = delete["partition_key"] == "0:"
        return file["sequence_number"] < delete["sequence_number"] and (is_wide or is_partition)
    if file["sequence_number"] > delete["sequence_number"]:
        return False
    if delete["kind"] == "vector":
        return bool(delete["data_path"] == file["path"])
    if any(other["kind"] == "vector" and applies(other, file, []) for other in others):
        return False
    named = delete["data_path"]
    return is_partition if named is None else bool(named == file["path"])


@examples(200)
@given(_FILES, _DELETES)
def test_deletes_apply_by_kind_partition_path_and_sequence(
    files: list[tuple[int, str, int]], deletes: list[tuple[str, str, int, int | None]]
) -> None:
    some_files = [
        {"path": f"f{number}", "partition_key": key, "sequence_number": sequence}
        for number, key, sequence in files
    ]
    some_deletes = [
        {
            "path": f"d{number}",
            "kind": kind,
            "size_bytes": 1,
            "row_count": 1,
            "sequence_number": sequence,
            "partition_key": key,
            # A vector always names its file, and an equality delete file none.
            "data_path": None
            if kind == "equality" or (kind == "positions" and named is None)
            else f"f{named or 0}",
            "offset": None,
            "length": None,
            "is_global": kind == "equality" and key == "0:",
            "equality_ids": None,
        }
        for number, (kind, key, sequence, named) in enumerate(deletes)
    ]
    schema = pa.schema(
        {"path": pa.string(), "partition_key": pa.string(), "sequence_number": pa.int64()}
    )

    file, delete = applying(
        pa.Table.from_pylist(some_files, schema),
        pa.Table.from_pylist(some_deletes, PLANNED_DELETES),
        "metadata.json",
    )

    pairs = list(zip(file.tolist(), delete.tolist(), strict=True))
    assert pairs == [
        (at, number)
        for at, one in enumerate(some_files)
        for number, other in enumerate(some_deletes)
        if applies(other, one, some_deletes)
    ]
    assert file.dtype == delete.dtype == np.int64
