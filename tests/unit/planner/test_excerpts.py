"""Plans name the chunks of the columns and row groups that are read."""

from __future__ import annotations

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.support.files.excerpts import recorded
from tests.support.tables.inventories import inventory
from windrow_core.files.excerpts.outlines import Outline
from windrow_service.planner.packing.cut import cut
from windrow_service.planner.packing.excerpts import Excerpts, excerpts_of

# As if the files had more columns, as no excerpt is planned of over half of a split.
SIZE = 10**6
COUNT = 40


def files() -> pa.Table:
    """Return an inventory of files with three row groups; every fifth file has no outline."""
    found = []
    for at in range(COUNT):
        sink = io.BytesIO()
        table = pa.table({"a": range(at + 30), "b": [str(at)] * (at + 30), "c": range(at + 30)})
        pq.write_table(table, sink, row_group_size=-(-(at + 30) // 3))
        found.append((recorded(sink.getvalue()) if at % 5 else None) or (None, None))
    made = inventory([SIZE] * COUNT, row_group_offsets=[[4, 300_000, 600_000]] * COUNT)
    outlines, chunks = zip(*found, strict=True)
    halves = [
        pa.array(outlines[:9]).dictionary_encode(),
        pa.array(outlines[9:]).dictionary_encode(),
    ]
    for name, column in (
        ("outline", pa.chunked_array(halves)),
        ("chunks", pa.array(chunks, pa.list_(pa.int32()))),
    ):
        at = made.schema.get_field_index(name)
        made = made.set_column(at, made.schema.field(at), column)
    return made


def told(excerpts: Excerpts | None) -> list[list[int] | None]:
    assert excerpts is not None
    return [one and one["chunks"] for one in excerpts.column.to_pylist()]


def test_splits_of_few_files_have_the_same_excerpts_as_among_all() -> None:
    made = files()
    everything, few = np.arange(COUNT), np.array([3, 5, 17])
    all_splits, some_splits = (cut(made, rows, 400_000) for rows in (everything, few))
    assert len(all_splits) == 3 * COUNT

    among_all = told(excerpts_of(made, all_splits, ["C", "a", "other"]))
    alone = told(excerpts_of(made, some_splits, ["C", "a", "other"]))

    assert alone == [among_all[3 * at + part] for at in few for part in range(3)]
    assert [chunks is None for chunks in among_all[::3]] == [at % 5 == 0 for at in range(COUNT)]
    # The row count of the row group, and four numbers for each of two chunks.
    assert {len(chunks) for chunks in among_all if chunks} == {1 + 2 * 4}
    assert [sum(chunks[0] for chunks in alone[:3] if chunks), alone[3]] == [33, None]


def test_whole_files_have_all_their_row_groups() -> None:
    made = files()

    excerpts = excerpts_of(made, cut(made, np.arange(COUNT), 10**9), ["b"])

    chunks = told(excerpts)[1]
    assert excerpts is not None
    assert chunks is not None
    assert chunks[::5] == [11, 11, 9]
    assert [column.name for column in Outline.of_text(excerpts.outlines[0]).columns] == ["b"]


def test_splits_beyond_the_number_limit_or_without_requested_columns_are_read_whole() -> None:
    made = files()
    splits = cut(made, np.arange(COUNT), 400_000)

    few = told(excerpts_of(made, splits, ["a"], max_numbers=25))

    assert [at for at, chunks in enumerate(few) if chunks] == [3, 4, 5, 6, 7]
    assert excerpts_of(made, splits, ["a"], max_numbers=4) is None
    assert excerpts_of(made, splits, ["other"]) is None
    assert excerpts_of(made, splits, []) is None
