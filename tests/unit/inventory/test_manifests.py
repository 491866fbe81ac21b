"""Inventories are cut into manifests that stay the same where the files do."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.unit.inventory.files import take_inline, write
from windrow_service.inventory import (
    CorruptManifestError,
    Manifest,
    cut_files,
    decode_manifest,
    encode_manifest,
)
from windrow_service.planner.columns import inventory_schema


def inventory(
    paths: Sequence[str], values: Sequence[Any] | None = None, type_: str = "double"
) -> pa.Table:
    """Return an inventory with one partition column `p` of these values."""
    schema = inventory_schema(pa.schema([]), pa.schema([("p", pa.type_for_alias(type_))]))
    values = [1.0] * len(paths) if values is None else values
    rows = [
        {
            "path": path,
            "size_bytes": 1,
            "mtime_ns": 1,
            "row_count": 1,
            "hosts": [],
            "delete_count": 0,
            "delete_bytes": 0,
            "row_group_offsets": [4],
            "stats_see_nan": False,
            "partition": {"p": value},
            "stats": {},
        }
        for path, value in zip(paths, values, strict=True)
    ]
    return pa.Table.from_pylist(rows, schema=schema)


def names(*numbers: int) -> list[str]:
    return [f"f{number:03d}" for number in numbers]


def counts(manifests: Sequence[Manifest]) -> list[int]:
    return [manifest.file_count for manifest in manifests]


def test_no_files_make_no_manifests() -> None:
    assert cut_files(inventory([])) == []


def test_a_manifest_says_what_it_holds(tmp_path: Path) -> None:
    write(tmp_path, "ds=2024-01-01/n=1/f")
    write(tmp_path, "ds=2024-01-02/n=__HIVE_DEFAULT_PARTITION__/f")
    files = take_inline(str(tmp_path)).files

    (manifest,) = cut_files(files)

    assert manifest.data is not None
    assert manifest.manifest_id == hashlib.sha256(manifest.data).hexdigest()
    assert (manifest.first_path, manifest.file_count) == ("ds=2024-01-01/n=1/f", 2)
    assert column_range(manifest, "n") == (1, 1, {"value", "null"})
    assert str(column_range(manifest, "ds")[1]) == "2024-01-02"
    assert decode_manifest(manifest.data).equals(files)


def column_range(manifest: Manifest, column: str) -> tuple[Any, Any, set[str]]:
    """Return the bounds of a column, and what it may hold."""
    (row,) = manifest.range["columns"].to_pylist()
    low, high, *_ = row[column].values()
    return low, high, {flag for flag in ("value", "nan", "null") if row[column][flag]}


def test_nan_is_never_a_bound() -> None:
    files = inventory(names(1, 2, 3), [2.0, float("nan"), None])

    (manifest,) = cut_files(files)

    assert column_range(manifest, "p") == (2.0, 2.0, {"value", "nan", "null"})


def test_a_range_of_nulls_has_no_bounds() -> None:
    (manifest,) = cut_files(inventory(names(1, 2), [None, None]))

    assert column_range(manifest, "p") == (None, None, {"null"})


def test_a_large_inventory_is_cut_evenly() -> None:
    manifests = cut_files(inventory(names(*range(25))), manifest_files=10)

    assert counts(manifests) == [8, 8, 9]
    assert [manifest.first_path for manifest in manifests] == names(0, 8, 16)


def test_bytes_do_not_depend_on_hidden_values_of_nulls() -> None:
    table = inventory(names(1, 2), [None, 1.0])
    hidden = pa.Array.from_buffers(
        pa.float64(), 2, [pa.py_buffer(b"\xfe"), pa.array([9.0, 1.0]).buffers()[1]]
    )
    other = table.set_column(
        table.schema.get_field_index("partition"),
        table.schema.field("partition"),
        pa.StructArray.from_arrays([hidden], names=["p"]),
    )

    assert other.equals(table)
    assert encode_manifest(other) == encode_manifest(table)


def test_a_truncated_manifest_is_never_mistaken_for_a_smaller_one() -> None:
    data = encode_manifest(inventory(names(1, 2)))

    for length in range(len(data)):
        with pytest.raises(CorruptManifestError, match="manifest cannot be read"):
            decode_manifest(data[:length])


def test_other_bytes_are_not_a_manifest() -> None:
    with pytest.raises(CorruptManifestError, match="manifest cannot be read"):
        decode_manifest(b"PAR1" + encode_manifest(inventory(names(1, 2))))
