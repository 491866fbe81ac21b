"""Files that are decoded together have the rows, and the errors, that they have one by one."""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.property.test_readable_types import COLUMNS
from tests.support.files.footers import COLUMNS as CHUNKS
from tests.support.files.footers import METADATA, ROW_GROUPS, Fields, edit
from tests.support.laws import examples
from tests.support.plans.plans import group_of
from tests.unit.inventory.files import take_inline
from windrow_core.files.errors import InventoryError, UnreadableTypeError
from windrow_core.files.excerpts.alike import alike_files
from windrow_core.files.excerpts.gathered import Gathered
from windrow_core.files.excerpts.pages import hold_their_values
from windrow_core.files.excerpts.thrift import END, INT, STRUCT, field, integer
from windrow_core.files.footers import footer_in
from windrow_tables.executor.decoding import Decoder
from windrow_tables.executor.errors import TaskReadError
from windrow_tables.executor.reading import read_group
from windrow_tables.executor.spec import ReadLimits, ReadSpec

PUBLISHED = Path(__file__).parents[1] / "fixtures/parquet-testing"
TOGETHER = ReadLimits(min_joined_files=2)
ONE_BY_ONE = ReadLimits(min_joined_files=2**31)

# Fields of RowGroup and ColumnMetaData.
ROW_COUNT = 3
VALUES, DATA = 5, 9


def options() -> st.SearchStrategy[dict[str, Any]]:
    """Draw how a writer writes."""
    return st.fixed_dictionaries(
        {
            "compression": st.sampled_from(["none", "snappy", "zstd", "gzip"]),
            "use_dictionary": st.booleans(),
            "data_page_version": st.sampled_from(["1.0", "2.0"]),
            "data_page_size": st.sampled_from([1, 2**20]),
            "write_batch_size": st.sampled_from([1, 1024]),
            "row_group_size": st.sampled_from([2, 2**20]),
            "write_statistics": st.booleans(),
            "store_schema": st.booleans(),
        }
    )


@st.composite
def files(draw: st.DrawFn) -> tuple[pa.Table, list[bytes]]:
    """Draw rows, and two to eight Parquet files of them, written in at most two ways."""
    columns = draw(COLUMNS.filter(bool))
    three = pa.Table.from_arrays(columns, [f"c{n}" for n in range(len(columns))])
    writers = draw(st.lists(options(), min_size=1, max_size=2))
    contents = []
    for _ in range(draw(st.integers(2, 8))):
        rows = draw(st.integers(0, 3))
        sink = io.BytesIO()
        table = pa.concat_tables([three] * rows) if rows else three.slice(0, 0)
        pq.write_table(table, sink, **draw(st.sampled_from(writers)))
        contents.append(sink.getvalue())
    return three, contents


def outcome(
    folder: Path, group: pa.RecordBatch, schema: pa.Schema, limits: ReadLimits
) -> tuple[str, str]:
    """Return the rows that are read of all files, as text, and the error that ends the read."""
    spec = ReadSpec(
        table="t",
        location=str(folder),
        data=schema,
        hidden=pa.schema([]),
        partition=pa.schema([]),
        output=tuple(schema.names),
        limits=limits,
    )
    try:
        table = pa.Table.from_batches(read_group(spec, group, None), spec.output_schema)
    except TaskReadError as error:
        return "", f"{type(error).__name__}: {error}"
    try:
        return str(table.to_pylist()), ""
    except (OverflowError, ValueError):
        # Damaged values may be none that Python has.
        return table.combine_chunks().to_string(), ""


@contextmanager
def table(
    rows: pa.Table, contents: list[bytes]
) -> Iterator[tuple[Path, pa.RecordBatch, pa.Schema]]:
    """Write files, and yield their folder, the group of all, and the columns that can be read."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for n, content in enumerate(contents):
            (folder / f"{n}.parquet").write_bytes(content)
        yield folder, group_of(folder), readable(rows)


def readable(rows: pa.Table) -> pa.Schema:
    """Return the columns that a refresh accepts, with the table's types."""
    with tempfile.TemporaryDirectory() as folder:
        while True:
            pq.write_table(rows, Path(folder) / "f.parquet")
            try:
                return take_inline(folder).data_schema
            except UnreadableTypeError as error:
                rows = rows.drop_columns([error.column])


def change(path: Path, number: Callable[[bytes], bytes]) -> None:
    """Change a file, which keeps the time of its last change."""
    state = path.stat()
    path.write_bytes(number(path.read_bytes()))
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))


@examples(200)
@given(files(), st.data())
def test_files_have_the_same_rows_together_and_one_by_one(
    drawn: tuple[pa.Table, list[bytes]], data: st.DataObject
) -> None:
    rows, contents = drawn
    with table(rows, contents) as (folder, group, schema):
        names = data.draw(
            st.lists(st.sampled_from(schema.names), unique=True) if len(schema) else st.just([])
        )
        some = pa.schema([schema.field(name) for name in names])

        together = outcome(folder, group, some, TOGETHER)

        assert together == outcome(folder, group, some, ONE_BY_ONE)


@examples(200)
@given(files(), st.data())
def test_damaged_files_have_the_same_rows_or_errors_together_and_one_by_one(
    drawn: tuple[pa.Table, list[bytes]], data: st.DataObject
) -> None:
    rows, contents = drawn
    with table(rows, contents) as (folder, group, schema):
        assume(len(schema))
        for _ in range(data.draw(st.integers(1, 3))):
            file = data.draw(st.integers(0, len(contents) - 1))
            at = data.draw(st.integers(0, len(contents[file]) - len(footer_in(contents[file])) - 9))
            bits = data.draw(st.integers(1, 255))
            change(folder / f"{file}.parquet", partial(flipped, at=at, bits=bits))

        together = outcome(folder, group, schema, TOGETHER)

        assert together == outcome(folder, group, schema, ONE_BY_ONE)


def flipped(content: bytes, at: int, bits: int) -> bytes:
    return content[:at] + bytes([content[at] ^ bits]) + content[at + 1 :]


@examples(100)
@given(files())
def test_numbers_of_alike_files_are_those_that_each_footer_says(
    drawn: tuple[pa.Table, list[bytes]],
) -> None:
    _, contents = drawn
    for alike in alike_files(Gathered.of(contents), 2):
        for file, groups in zip(alike.files.tolist(), alike.groups, strict=True):
            metadata = pq.read_metadata(io.BytesIO(contents[file]))
            assert groups[:, 0].tolist() == [
                metadata.row_group(at).num_rows for at in range(metadata.num_row_groups)
            ]
            for at, numbers in enumerate(groups[:, 1:].reshape(len(groups), -1, 4).tolist()):
                for leaf, (start, length, dictionary, values) in enumerate(numbers):
                    chunk = metadata.row_group(at).column(leaf)
                    assert chunk.num_values == values
                    assert chunk.total_compressed_size == length
                    assert chunk.data_page_offset == start + dictionary
                    assert chunk.dictionary_page_offset == (start if dictionary else None)


def numbers_changed(path: Path, field: int, by: int, leaf: int | None = None) -> None:
    """Change a number of a file's first row group, or of one of its chunks."""

    def changed(footer: Fields) -> None:
        group = footer[ROW_GROUPS][1][1][0]
        fields = group if leaf is None else group[CHUNKS][1][1][leaf][METADATA][1]
        kind, number = fields[field]
        fields[field] = kind, number + by

    edit(path, changed)


def written(folder: Path, count: int) -> pa.Schema:
    columns = pa.schema([("id", pa.int64()), ("text", pa.string())])
    for n in range(count):
        ids = range(10 * n, 10 * n + 10)
        rows = pa.table([pa.array(ids), [f"text {one}" for one in ids]], schema=columns)
        pq.write_table(rows, folder / f"{n}.parquet", use_dictionary=False, compression="none")
    return columns


def test_values_that_a_footer_does_not_count_do_not_move_to_the_next_file(tmp_path: Path) -> None:
    columns = written(tmp_path, 4)
    # Pages have a row more than the first of them says, and one less than the second.
    for file, by in ((0, -1), (1, 1)):
        path = tmp_path / f"{file}.parquet"
        numbers_changed(path, ROW_COUNT, by)
        numbers_changed(path, VALUES, by, leaf=0)
        numbers_changed(path, VALUES, by, leaf=1)
    group = group_of(tmp_path)

    together = outcome(tmp_path, group, columns, TOGETHER)

    assert "1.parquet" in together[1]
    assert together == outcome(tmp_path, group, columns, ONE_BY_ONE)


def test_a_column_with_more_values_than_rows_is_not_read_into_the_next_file(tmp_path: Path) -> None:
    columns = written(tmp_path, 4)
    numbers_changed(tmp_path / "2.parquet", VALUES, -1, leaf=1)
    group = group_of(tmp_path)

    assert outcome(tmp_path, group, columns, TOGETHER) == outcome(
        tmp_path, group, columns, ONE_BY_ONE
    )


def test_a_footer_that_points_beyond_its_file_reads_no_other_file(tmp_path: Path) -> None:
    columns = written(tmp_path, 4)
    path = tmp_path / "1.parquet"
    moved = 0
    # A larger number makes the file longer.
    while moved != (size_bytes := path.stat().st_size):
        numbers_changed(path, DATA, size_bytes - moved, leaf=0)
        moved = size_bytes
    group = group_of(tmp_path)

    together = outcome(tmp_path, group, columns, TOGETHER)

    assert "1.parquet" in together[1]
    assert together == outcome(tmp_path, group, columns, ONE_BY_ONE)


def test_files_that_are_alike_are_decoded_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = written(tmp_path, 60)
    group = group_of(tmp_path)
    rows = outcome(tmp_path, group, columns, ONE_BY_ONE)
    monkeypatch.setattr(Decoder, "_decode_one_by_one", None)

    assert outcome(tmp_path, group, columns, ReadLimits()) == rows


@pytest.mark.parametrize("path", sorted(PUBLISHED.glob("*.parquet")), ids=lambda path: path.stem)
def test_published_files_have_the_same_rows_together_and_one_by_one(
    path: Path, tmp_path: Path
) -> None:
    # Arrow crashes on encrypted files, so Windrow parses footers in processes of their own.
    if "encrypt" in path.name:
        return
    for n in range(3):
        (tmp_path / f"{n}.parquet").write_bytes(path.read_bytes())
    try:
        columns = take_inline(str(tmp_path)).data_schema
    except InventoryError:
        return
    group = group_of(tmp_path)

    assert outcome(tmp_path, group, columns, TOGETHER) == outcome(
        tmp_path, group, columns, ONE_BY_ONE
    )


@pytest.mark.parametrize(("page_type", "counts"), [(0, True), (1, False), (2, False)])
def test_values_are_counted_of_pages_that_have_some_alone(page_type: int, counts: bool) -> None:
    values = field(INT) + integer(10) + END
    head = field(INT) + integer(page_type) + field(INT, 2) + integer(0)
    page = np.frombuffer(head + field(STRUCT, 2) + values + END, np.uint8)
    begins, lengths = np.array([0]), np.array([len(page)])

    assert hold_their_values(page, begins, lengths, np.array([10])).all() == counts
