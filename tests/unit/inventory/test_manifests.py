"""Inventories are cut into manifests that stay the same where the files do."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.unit.inventory.files import take_inline, write
from windrow_core.files.rows import EXCERPT_FIELDS, EXTRA_FIELDS, inventory_schema
from windrow_service.inventory.errors import CorruptManifestError
from windrow_service.inventory.footers.excerpts import bounded
from windrow_service.inventory.manifests.encoding import (
    Manifest,
    cut_files,
    decode_manifest,
    encode_manifest,
)
from windrow_service.inventory.manifests.row_changes import differing


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
    """Return the bounds of a column, and the kinds of its values."""
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


def outlined(outlines: Sequence[str | None], chunks: Sequence[list[int] | None]) -> pa.Table:
    """Return an inventory of files with these outlines and chunks."""
    files = inventory([f"f{at}" for at in range(len(outlines))])
    for name, values in zip(EXCERPT_FIELDS, (outlines, chunks), strict=True):
        field = files.schema.field(name)
        at = files.schema.get_field_index(name)
        column = (
            pa.array(values, pa.string()) if name == "outline" else pa.array(values, field.type)
        )
        column = column.dictionary_encode() if name == "outline" else column
        files = files.set_column(at, field, column)
    return files


def test_outlines_and_chunks_are_kept_once_each_and_left_out_if_not_wanted() -> None:
    files = outlined(["b" * 9999, None, "a", *["b" * 9999] * 97], [[1, 2], None, [], *[[3]] * 97])
    # As after removals: in another order, and with values that no file has any more.
    other = outlined(["x", "a", "b" * 9999, None], [[0], [], [1, 2], None])
    again = pa.concat_tables([other.slice(2, 2), other.slice(1, 1), files.slice(3)])
    again = again.set_column(0, again.schema.field(0), files["path"])

    data = encode_manifest(files)

    decoded = decode_manifest(data)
    assert decoded.equals(files)
    assert len(decoded["outline"].combine_chunks().dictionary) == 2
    assert encode_manifest(again) == data
    assert not differing(files, again).any()
    without = decode_manifest(data, excerpts=False)
    assert without.schema.equals(files.schema)
    assert without.equals(outlined([None] * 100, [None] * 100))
    changed = outlined(["a", *[None] * 99], [[1, 2], None, [1], *[[3]] * 97])
    assert differing(files, changed).nonzero()[0].tolist() == [0, 2, *range(3, 100)]


def test_manifests_without_outlines_equal_those_without_such_columns() -> None:
    files = inventory(["f"])

    assert encode_manifest(files) == encode_manifest(files.drop_columns(list(EXTRA_FIELDS)))


def test_the_largest_files_keep_their_chunks_if_there_are_too_many() -> None:
    files = outlined(["a", "b" * 50, "a", None], [[1, 2, 3], [1], [1, 2], None])
    sizes = pa.chunked_array([[10, 20, 30, 40]])

    assert bounded(files, sizes).equals(files)
    assert bounded(files, sizes, max_numbers=5)["chunks"].to_pylist() == [None, [1], [1, 2], None]
    few = bounded(files, sizes, max_outlines_bytes=50)
    assert few["outline"].to_pylist() == ["a", None, "a", None]
    assert few["chunks"].to_pylist() == [[1, 2, 3], None, [1, 2], None]
