"""The pieces in which tasks request a split."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.files.excerpts import content, planned, read, recorded
from windrow_core.files.excerpts.excerpt import REQUEST_BYTES
from windrow_tables.executor.errors import UnreadableFileError
from windrow_tables.executor.pieces import Pieces
from windrow_tables.executor.spec import ReadLimits, ReadSpec, Split

NAMES = [f"c{n}" for n in range(10)]


@pytest.fixture(scope="module")
def table() -> pa.Table:
    rng = np.random.default_rng(0)
    return pa.table({name: rng.random(60_000) for name in NAMES})


@pytest.fixture(scope="module")
def file(table: pa.Table) -> bytes:
    """A file of 5 MB in three row groups."""
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=20_000, use_dictionary=False, compression="none")
    return sink.getvalue()


def spec_of(outline: str, *names: str, **limits: int) -> ReadSpec:
    return ReadSpec(
        table="t",
        location="s3://bucket/t",
        data=pa.schema([(name, pa.float64()) for name in names]),
        hidden=pa.schema([]),
        partition=pa.schema([]),
        output=names,
        limits=ReadLimits(**limits),
        outlines=(outline,),
    )


def split_of(file: bytes, groups: Any) -> Split:
    chunks = {"outline": 0, "chunks": groups.reshape(-1).tolist()}
    return Split(0, "s3://bucket/t/f", 0, len(file), len(file), 1, None, excerpt=chunks)


def test_pieces_have_the_columns_read_in_row_groups_that_fit(table: pa.Table, file: bytes) -> None:
    found = recorded(file)
    assert found is not None
    some, groups = planned(*found, ["c1", "c2", "c8"])
    # The plan has one column more than is read.
    spec = spec_of(some.to_text(), "c2", "c8", max_buffered_file_bytes=700_000)

    pieces = Pieces(spec, whole=False).of(split_of(file, groups))

    assert [piece.split.row_count for piece in pieces] == [40_000, 20_000]
    assert all(piece.split.is_whole for piece in pieces)
    parts = [read(content(file, piece.excerpt)) for piece in pieces if piece.excerpt]
    assert pa.concat_tables(parts).equals(table.select(["c2", "c8"]))
    assert sum(piece.size_bytes for piece in pieces) < 2 * 480_500


def test_near_chunks_are_one_range(file: bytes) -> None:
    found = recorded(file)
    assert found is not None
    some, groups = planned(*found, NAMES)
    text = some.to_text()

    def ranges(*names: str) -> list[int]:
        pieces = Pieces(spec_of(text, *names), whole=False).of(split_of(file, groups))
        return [len(piece.excerpt.ranges) if piece.excerpt else 0 for piece in pieces]

    assert REQUEST_BYTES < 160_000
    # Columns 3 and 4 lie side by side.
    assert ranges("c3", "c4") == [3]
    assert ranges("c3", "c5") == [6]
    # So do the last column and the first one of the next row group.
    assert ranges("c0", "c9") == [4]
    assert ranges(*NAMES) == [1]
    assert ranges("missing") == [0]


def test_caches_and_counts_request_whole_files(file: bytes) -> None:
    found = recorded(file)
    assert found is not None
    some, groups = planned(*found, ["c1"])
    split = split_of(file, groups)

    for pieces in (
        Pieces(spec_of(some.to_text(), "c1"), whole=True),
        Pieces(spec_of(some.to_text()), whole=False),
    ):
        assert [(piece.split, piece.excerpt) for piece in pieces.of(split)] == [(split, None)]


@pytest.mark.parametrize("wrong", ["outline", "place", "length", "json"])
def test_an_impossible_plan_is_refused_with_the_name_of_the_file(file: bytes, wrong: str) -> None:
    found = recorded(file)
    assert found is not None
    some, groups = planned(*found, ["c1"])
    split = split_of(file, groups)
    assert split.excerpt is not None
    if wrong == "outline":
        split.excerpt["outline"] = 1
    elif wrong == "place":
        split.excerpt["chunks"][1] = len(file)
    elif wrong == "length":
        split.excerpt["chunks"].pop()
    text = "{}" if wrong == "json" else some.to_text()

    with pytest.raises(UnreadableFileError, match="s3://bucket/t/f"):
        Pieces(spec_of(text, "c1"), whole=False).of(split)
