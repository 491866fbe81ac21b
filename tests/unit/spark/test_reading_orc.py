"""Reading groups of ORC files without Spark: stripes, names, order, memory, damaged files."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.orc as orc
import pytest

from tests.support.files.orc_files import write
from tests.unit.inventory.files import inline
from windrow_core.files.formats import ORC
from windrow_service.inventory.build import take_inventory
from windrow_service.inventory.look import Look
from windrow_service.planner.packing.blocks import covered_blocks
from windrow_service.planner.packing.cut import cut
from windrow_tables.executor.errors import (
    AmbiguousColumnError,
    ColumnTypeError,
    StaleFileError,
    UnreadableFileError,
    UnsortedFileError,
)
from windrow_tables.executor.reading import read_group
from windrow_tables.executor.spec import ReadLimits, ReadSpec, SortKey

NTZ = pa.timestamp("us")


def spec(location: Path, fields: list[tuple[str, pa.DataType]], **changes: Any) -> ReadSpec:
    data = pa.schema(fields)
    made = ReadSpec(
        table="t",
        location=str(location),
        data=data,
        hidden=pa.schema([]),
        partition=pa.schema([]),
        output=tuple(data.names),
        format="orc",
    )
    return replace(made, **changes)


def group_of(location: Path, max_size: int = 2**40) -> pa.RecordBatch:
    """Return one group of all files of a table, cut as a plan cuts them."""
    files = take_inventory(Look(location=str(location), file_format=ORC), executor=inline).files
    splits = cut(files, np.arange(len(files)), max_size)
    first_block, block_count = covered_blocks(files, splits)
    of_file = files.select(["path", "size_bytes", "mtime_ns", "row_count", "partition"]).take(
        pa.array(splits.file)
    )
    columns = {
        **{name: of_file[name].combine_chunks() for name in of_file.column_names},
        "start": pa.array(splits.start),
        "length": pa.array(splits.length),
        "first_block": first_block,
        "block_count": block_count,
    }
    return pa.RecordBatch.from_pydict(columns)


def rows(spec: ReadSpec, group: pa.RecordBatch | None = None, **residual: Any) -> list[Any]:
    group = group_of(Path(spec.location)) if group is None else group
    batches = read_group(spec, group, residual or None)
    return [row for batch in batches for row in batch.to_pylist()]


def test_names_are_matched_without_case_and_missing_columns_are_null(tmp_path: Path) -> None:
    write(tmp_path, "1", {"ID": [1], "s": [{"x": 1, "y": "a"}], "more": [0]})
    write(tmp_path, "2", {"name": ["b"], "iD": [2]})
    write(tmp_path, "3", {"other": [1, 2]})
    struct = pa.struct([("x", pa.int64()), ("y", pa.string())])

    got = rows(spec(tmp_path, [("id", pa.int64()), ("s", struct), ("name", pa.string())]))

    assert got == [
        {"id": 1, "s": {"x": 1, "y": "a"}, "name": None},
        {"id": 2, "s": None, "name": "b"},
        {"id": None, "s": None, "name": None},
        {"id": None, "s": None, "name": None},
    ]


def test_two_columns_that_match_by_case_are_an_error_that_names_both(tmp_path: Path) -> None:
    write(tmp_path, "1", {"x": [1]})
    group = group_of(tmp_path)
    write(tmp_path, "1", {"ID": [1], "Id": [2]})
    status = (tmp_path / "1").stat()
    at = [group.schema.get_field_index(name) for name in ("size_bytes", "length", "mtime_ns")]
    for place, value in zip(at, (status.st_size, status.st_size, status.st_mtime_ns), strict=True):
        group = group.set_column(place, group.schema.field(place), pa.array([value]))

    with pytest.raises(AmbiguousColumnError, match="'ID', 'Id'"):
        rows(spec(tmp_path, [("id", pa.int64())]), group)


def test_integers_are_read_as_times_but_not_as_other_types(tmp_path: Path) -> None:
    micros = [0, None, -(10**15)]
    held = {"at": micros, "in": [{"at": at} for at in micros], "all": [micros] * 3}
    write(tmp_path, "1", held)
    inside, all_ = pa.struct([("at", NTZ)]), pa.list_(pa.field("element", NTZ))

    got = rows(spec(tmp_path, [("at", NTZ), ("in", inside), ("all", all_)]))

    times = pa.array(micros, pa.int64()).cast(NTZ).to_pylist()
    assert got == [{"at": at, "in": {"at": at}, "all": times} for at in times]
    with pytest.raises(ColumnTypeError, match=r"is int64, which cannot be read .* int32"):
        rows(spec(tmp_path, [("at", pa.int32())]))


@pytest.mark.parametrize("columns", [["id", "name"], []], ids=["columns", "none"])
@pytest.mark.parametrize("buffered", [True, False])
def test_stripes_of_a_cut_file_are_each_read_once(
    tmp_path: Path, columns: list[str], buffered: bool
) -> None:
    count = 30_000
    random = np.random.default_rng(3)
    table = pa.table(
        {"id": random.permutation(count), "name": [f"n{at}" for at in random.permutation(count)]}
    )
    write(tmp_path, "1", table, stripe_size=2**14)
    write(tmp_path, "2", {"id": [-1], "name": ["last"]})
    whole = group_of(tmp_path)
    stripes = orc.ORCFile(tmp_path / "1").nstripes
    types = {"id": pa.int64(), "name": pa.string()}
    limits = ReadLimits(
        max_decoded_at_once_bytes=1,
        max_buffered_file_bytes=2**30 if buffered else 1,
        max_batch_rows=100,
    )
    read = spec(tmp_path, [(name, types[name]) for name in columns], limits=limits)

    for max_size in (1, (tmp_path / "1").stat().st_size // 5):
        group = group_of(tmp_path, max_size)
        assert 4 < len(group) <= stripes + 1
        batches = list(read_group(read, group, None))
        assert max(batch.num_rows for batch in batches) <= 100
        found = pa.Table.from_batches(batches)
        if columns:
            assert found.equals(pa.concat_tables([table, pa.table({"id": [-1], "name": ["last"]})]))
        assert found.num_rows == count + 1
        assert sum(map(len, read_group(read, whole, None))) == count + 1


def test_a_split_that_does_not_name_its_stripes_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "1", {"x": np.random.default_rng(1).permutation(20_000)}, stripe_size=2**14)
    group = group_of(tmp_path, 1).drop_columns(["first_block", "block_count"])

    with pytest.raises(UnreadableFileError, match=r"/1' cannot be read as ORC: its plan does"):
        rows(spec(tmp_path, [("x", pa.int64())]), group)


def test_files_are_merged_by_the_tables_sort_columns(tmp_path: Path) -> None:
    for at in range(5):
        write(tmp_path, f"{at}", {"k": [*range(at, 100, 5), None], "v": [at] * 21})
    key = SortKey(name="k", descending=False, nulls_first=False)
    read = spec(tmp_path, [("k", pa.int64()), ("v", pa.int64())], sort=(key,))

    got = rows(read)

    assert [row["k"] for row in got] == [*range(100), *[None] * 5]
    write(tmp_path, "6", {"k": [2, 1], "v": [6, 6]})
    with pytest.raises(UnsortedFileError, match="/6' is not sorted by k"):
        rows(read)


def test_filters_and_partition_columns_apply(tmp_path: Path) -> None:
    write(tmp_path, "p=1/f", {"x": [1, 2, 3]})
    write(tmp_path, "p=2/f", {"x": [2, None, 5]})
    read = spec(
        tmp_path,
        [],
        hidden=pa.schema([("x", pa.int64())]),
        partition=pa.schema([("p", pa.int32())]),
        output=("p",),
    )

    got = rows(read, op="gt", column="x", value=1)

    assert [row["p"] for row in got] == [1, 1, 2, 2]


@pytest.mark.parametrize("large", [False, True])
def test_a_damaged_or_changed_file_is_an_error_that_names_it(tmp_path: Path, large: bool) -> None:
    random = np.random.default_rng(2)
    write(tmp_path, "1", {"x": random.permutation(5_000), "s": ["a"] * 5_000}, compression="zlib")
    limits = ReadLimits(max_decoded_at_once_bytes=1, max_buffered_file_bytes=1)
    read = spec(tmp_path, [("x", pa.int64())], limits=limits if large else ReadLimits())
    group = group_of(tmp_path)
    path = tmp_path / "1"
    content, status = path.read_bytes(), path.stat()

    def put(changed: bytes) -> None:
        path.write_bytes(changed)
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))

    put(content[:100] + b"\xff" * 4_000 + content[4_100:])
    with pytest.raises(UnreadableFileError, match="/1' cannot be read as ORC: "):
        rows(read, group)
    put(b"id,name\n" * (len(content) // 8) + b"x" * (len(content) % 8))
    with pytest.raises(UnreadableFileError, match="/1' cannot be read as ORC: "):
        rows(read, group)
    put(content[:-1])
    with pytest.raises(StaleFileError, match="size in bytes"):
        rows(read, group)
    put(content)
    assert len(rows(read, group)) == 5_000
    os.utime(path, ns=(0, 0))
    with pytest.raises(StaleFileError, match="modification time"):
        rows(read, group)


def test_a_plan_with_another_row_count_than_the_file_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "1", {"x": [1, 2]})
    group = group_of(tmp_path)
    at = group.schema.get_field_index("row_count")
    other = group.set_column(at, group.schema.field(at), pa.array([3]))

    for fields in ([("x", pa.int64())], []):
        with pytest.raises(StaleFileError, match="row count was 3 and is 2"):
            rows(spec(tmp_path, fields), other)
