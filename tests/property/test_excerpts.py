"""An excerpt of a Parquet file has the rows of the file in the requested columns."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.property.test_readable_types import COLUMNS
from tests.support.files.excerpts import content, excerpt, planned, read, recorded
from tests.support.laws import examples
from windrow_core.files.excerpts.chunk_ranges import chunk_ranges_in
from windrow_core.files.excerpts.excerpt import excerpts_of
from windrow_core.files.excerpts.outlines import Outline, Outlines
from windrow_core.files.footers import footer_in

PUBLISHED = Path(__file__).parents[1] / "fixtures/parquet-testing"
# Reasons: Hadoop's LZ4 has no name in Arrow, old writers miscounted chunks, no column metadata.
NOT_EXCERPTED = {
    "hadoop_lz4_compressed.parquet",
    "non_hadoop_lz4_compressed.parquet",
    "nation.dict-malformed.parquet",
}


@st.composite
def files(draw: st.DrawFn) -> tuple[bytes, list[str]]:
    """Draw a Parquet file of up to 60 rows, and some of its columns."""
    columns = draw(COLUMNS.filter(bool))
    # The same three rows are repeated, as Arrow cannot nest, take or compare some types.
    rows = draw(st.integers(0, 20))
    names = [f"c{n}" for n in range(len(columns))]
    three = pa.Table.from_arrays(columns, names)
    table = pa.concat_tables([three] * rows) if rows else three.slice(0, 0)
    sink = io.BytesIO()
    pq.write_table(
        table,
        sink,
        row_group_size=draw(st.integers(1, 60)),
        compression=draw(st.sampled_from(["none", "snappy", "gzip", "zstd", "lz4", "brotli"])),
        use_dictionary=draw(st.booleans()),
        data_page_version=draw(st.sampled_from(["1.0", "2.0"])),
        data_page_size=draw(st.sampled_from([16, 2**20])),
        use_deprecated_int96_timestamps=draw(st.booleans()),
        store_schema=draw(st.booleans()),
        version=draw(st.sampled_from(["1.0", "2.6"])),
    )
    return sink.getvalue(), draw(st.lists(st.sampled_from(names), min_size=1, unique=True))


def in_file_order(file: bytes, names: list[str]) -> list[str]:
    return [name for name in pq.read_schema(io.BytesIO(file)).names if name in names]


def same(one: Any, other: Any) -> bool:
    """Return whether two values are equal; NaN is equal to itself."""
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return list(one) == list(other) and all(map(same, one.values(), other.values()))
    if isinstance(one, float | np.floating) and math.isnan(one):
        return math.isnan(other)
    return bool(one == other)


@examples(60)
@given(files(), st.data())
def test_an_excerpt_holds_the_rows_of_the_requested_row_groups_and_columns(
    drawn: tuple[bytes, list[str]], data: st.DataObject
) -> None:
    file, names = drawn
    if not pq.read_metadata(io.BytesIO(file)).num_row_groups:
        assert recorded(file) is None
        return
    found = recorded(file)
    assert found is not None
    some, groups = planned(*found, [name.upper() for name in names])
    first = data.draw(st.integers(0, len(groups) - 1))
    last = data.draw(st.integers(first, len(groups) - 1))

    travelled, own = Outline.of_text(some.to_text()), groups[first : last + 1]
    plan, whole = excerpt(file, travelled, own)
    several = excerpts_of(travelled, own.reshape(-1), len(file), data.draw(st.integers(1, 2000)))

    before = int(groups[:first, 0].sum())
    count = int(groups[first : last + 1, 0].sum())
    expected = read(file, in_file_order(file, names)).slice(before, count)
    parts = [read(content(file, part)) for part in several]
    for got in (read(whole), pa.concat_tables(parts)):
        assert got.schema.equals(expected.schema)
        assert got.equals(expected)
    assert [part.row_count for part in several] == [len(part) for part in parts]
    assert plan.read_bytes <= len(file)


@examples(150)
@given(files(), st.data())
def test_wrong_numbers_give_an_error_or_other_rows_and_crash_no_process(
    drawn: tuple[bytes, list[str]], data: st.DataObject
) -> None:
    file, names = drawn
    found = recorded(file)
    assume(found is not None)
    assert found is not None
    some, groups = planned(*found, names)
    numbers = groups.reshape(-1).copy()
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(numbers) - 1))
        number = int(numbers[at])
        near = st.integers(number - 20, number + 20)
        numbers[at] = data.draw(near | st.integers(-(2**63), 2**63 - 1))

    try:
        plan, damaged = excerpt(file, some, numbers)
        assert plan.read_bytes <= len(file)
        read(damaged)
    except (ValueError, OSError, pa.ArrowException, MemoryError):
        pass


@examples(150)
@given(files(), st.data())
def test_a_damaged_footer_has_an_outline_or_none(
    drawn: tuple[bytes, list[str]], data: st.DataObject
) -> None:
    file, names = drawn
    metadata = pq.read_metadata(io.BytesIO(file))
    found = chunk_ranges_in(metadata, len(file))
    assume(found is not None)
    assert found is not None
    footer = bytearray(footer_in(file))
    for _ in range(data.draw(st.integers(1, 4))):
        footer[data.draw(st.integers(0, len(footer) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(footer[: data.draw(st.integers(0, len(footer)) | st.just(len(footer)))])

    outline = Outlines().of(cut, metadata, found.codecs)

    # Not read, since a footer has an outline only if Arrow has read its schema.
    if outline is not None:
        some, _ = Outline.of_text(outline).only(names)
        some.footer(np.empty((0, 1 + 4 * some.leaf_count), np.int64))


@pytest.mark.parametrize("path", sorted(PUBLISHED.glob("*.parquet")), ids=lambda path: path.stem)
def test_excerpts_of_published_files_hold_the_rows_of_the_files(path: Path) -> None:
    # Arrow crashes on encrypted files, so Windrow parses footers in processes of their own.
    if "encrypt" in path.name:
        return
    file = path.read_bytes()
    try:
        whole = read(file)
    except (OSError, pa.ArrowException):
        return

    found = recorded(file)

    assert (found is None) == (path.name in NOT_EXCERPTED)
    if found is None:
        return
    for name in [*whole.schema.names, None]:
        names = whole.schema.names if name is None else [name]
        _, some = excerpt(file, *planned(*found, names))
        got, expected = read(some), whole.select(in_file_order(file, names))
        assert got.schema.equals(expected.schema)
        assert got.equals(expected) or same(got.to_pylist(), expected.to_pylist())
