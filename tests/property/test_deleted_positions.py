"""Rows that bitmaps or files of positions name are left out, and no others."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.files.deleted import file_vector, inline_vector, position_file
from tests.support.laws import examples
from windrow_calls.plans import read_group_stream
from windrow_core.files.rows import inventory_schema
from windrow_service.planner.plan import plan_groups
from windrow_service.planner.policy import Policy
from windrow_service.wire.groups import ArrowGroups
from windrow_tables.executor.deleted_positions import DeletedPositions
from windrow_tables.executor.errors import DeletesError, UnreadableFileError
from windrow_tables.executor.reading import read_group
from windrow_tables.executor.spec import ReadLimits, ReadSpec, Split

DATA = pa.schema([("id", pa.int64())])
# With the second limits, every file is streamed.
LIMITS = (ReadLimits(), ReadLimits(max_decoded_at_once_bytes=0, max_buffered_file_bytes=0))

Deletes = dict[str, list[dict[str, Any]]]


def write(folder: Path, name: str, ids: range, group_rows: int) -> dict[str, Any]:
    """Write a file, and return its entry in an inventory."""
    path = folder / name
    pq.write_table(pa.table({"id": pa.array(ids)}), path, row_group_size=group_rows)
    groups = pq.read_metadata(path)
    starts = [groups.row_group(at).column(0) for at in range(groups.num_row_groups)]
    return {
        "path": name,
        "size_bytes": path.stat().st_size,
        "row_count": len(ids),
        "row_group_offsets": [
            min(one.dictionary_page_offset or one.data_page_offset, one.data_page_offset)
            for one in starts
        ],
    }


def read(
    folder: Path,
    files: list[dict[str, Any]],
    deletes: Deletes,
    *,
    columns: tuple[str, ...] = ("id",),
    limits: ReadLimits = LIMITS[0],
    max_split: int = 2**30,
) -> tuple[list[int], int, Counter[str]]:
    """Plan files and read them; return the ids, the number of rows, and what tasks counted."""
    schema = inventory_schema(DATA, pa.schema([]))
    unknown = {"mtime_ns": 5, "hosts": [], "stats_see_nan": False, "partition": {}, "stats": {}}
    rows = [
        {
            **unknown,
            **file,
            "deletes": deletes.get(file["path"]),
            "delete_count": len(deletes.get(file["path"], ())),
            "delete_bytes": 0,
        }
        for file in files
    ]
    policy = Policy(parallelism=2, max_split_size=max_split)
    planned = plan_groups(pa.Table.from_pylist(rows, schema), None, policy, columns=columns)
    body = ArrowGroups().encode(planned)
    stream = body.head + b"".join(chunk.data for chunk in body.chunks) + body.tail
    spec = ReadSpec(
        table="t",
        location=str(folder),
        data=pa.schema([field for field in DATA if field.name in columns]),
        hidden=pa.schema([]),
        partition=pa.schema([]),
        output=columns,
        limits=limits,
        logged=True,
    )
    counts: Counter[str] = Counter()
    batches = [
        batch
        for splits in read_group_stream("p", stream)["splits"]
        for batch in read_group(
            spec, pa.RecordBatch.from_struct_array(splits.values), None, None, counts
        )
    ]
    ids = [row for batch in batches if columns for row in batch["id"].to_pylist()]
    return ids, sum(batch.num_rows for batch in batches), counts


@examples(60)
@given(st.data())
def test_deleted_rows_are_left_out_however_files_are_cut_and_read(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files, deletes, wanted, named = [], Deletes(), [], []
        for at in range(data.draw(st.integers(1, 4))):
            count = data.draw(st.integers(1, 3000))
            ids = range(at * 10_000, at * 10_000 + count)
            files.append(write(folder, f"f{at}", ids, data.draw(st.sampled_from([100, 700, 5000]))))
            gone: set[int] = set()
            for kind in data.draw(st.lists(st.sampled_from("ifp"), max_size=2)):
                first = data.draw(st.integers(0, count - 1))
                chosen = range(first, count, data.draw(st.sampled_from([1, 1, 2, 7])))
                if kind == "p":
                    scheme = data.draw(st.sampled_from(["", "file:", "file://"]))
                    named += [(f"{scheme}{folder}/f{at}", position) for position in chosen]
                    deletes.setdefault(f"f{at}", []).append({"kind": "positions"})
                elif kind == "f":
                    vector = file_vector(folder / "vectors", "vectors", chosen)
                    deletes.setdefault(f"f{at}", []).append(vector)
                else:
                    deletes.setdefault(f"f{at}", []).append(inline_vector(chosen))
                gone |= set(chosen)
            wanted += [id_ for position, id_ in enumerate(ids) if position not in gone]
        if named:
            order = data.draw(st.permutations(range(len(named)))) if len(named) < 50 else None
            shuffled = [named[at] for at in order] if order else named
            positions = position_file(folder / "positions", "positions", shuffled)
            for of in deletes.values():
                of[:] = [positions if one == {"kind": "positions"} else one for one in of]
        how: dict[str, Any] = {
            "limits": data.draw(st.sampled_from(LIMITS)),
            "max_split": data.draw(st.sampled_from([2**30, 2**12])),
        }

        assert sorted(read(folder, files, deletes, **how)[0]) == sorted(wanted)
        assert read(folder, files, deletes, columns=(), **how)[1] == len(wanted)


def test_a_file_of_positions_is_opened_once_for_all_files_of_a_group(tmp_path: Path) -> None:
    files = [write(tmp_path, f"f{at}", range(at * 10, at * 10 + 10), 10) for at in range(20)]
    named = [(f"{tmp_path}/f{at}", 3) for at in range(20)]
    positions = position_file(tmp_path / "positions", "positions", named)

    ids, _, counts = read(tmp_path, files, {file["path"]: [positions] for file in files})

    assert sorted(ids) == [id_ for id_ in range(200) if id_ % 10 != 3]
    assert counts["delete_files"] == 2  # one for each of the plan's two groups


def test_files_of_a_table_with_a_log_are_checked_only_by_size(tmp_path: Path) -> None:
    file = write(tmp_path, "f", range(10), 10)

    assert read(tmp_path, [file], {})[1] == 10
    with pytest.raises(Exception, match="size in bytes"):
        read(tmp_path, [{**file, "size_bytes": file["size_bytes"] - 1}], {})


def test_files_without_a_row_count_are_read(tmp_path: Path) -> None:
    files = [{**write(tmp_path, "f", range(10), 10), "row_count": None}]

    assert read(tmp_path, files, {})[0] == list(range(10))
    positions = position_file(tmp_path / "p", "p", [(f"{tmp_path}/f", 3)])
    assert len(read(tmp_path, files, {"f": [positions]})[0]) == 9
    with pytest.raises(DeletesError, match="its rows are not counted"):
        read(tmp_path, files, {"f": [inline_vector([3])]})


def test_invalid_deletes_are_refused_with_the_reason(tmp_path: Path) -> None:
    files = [write(tmp_path, "f", range(10), 10)]
    (tmp_path / "vectors").write_bytes(b"short")
    other = pa.table({"path": ["f"], "at": [1]})
    pq.write_table(other, tmp_path / "other")
    size = (tmp_path / "other").stat().st_size
    vector = {"kind": "vector", "path": "vectors", "offset": 0, "length": 5}
    wrong: list[tuple[dict[str, Any], type[Exception], str]] = [
        (inline_vector([10]), DeletesError, "names row 10, but its file has 10 rows"),
        (inline_vector(range(5000)), DeletesError, "more rows than its file has"),
        ({"kind": "vector", "inline": "?"}, DeletesError, "not usable"),
        (vector, DeletesError, "'vectors' is not usable"),
        (
            {**vector, "length": 50},
            UnreadableFileError,
            "bytes 0 to 50 were asked for, but it has 5",
        ),
        ({**vector, "length": 2**40}, DeletesError, "its length is given as"),
        ({**vector, "path": "gone"}, Exception, "has vanished"),
        (
            {"kind": "positions", "path": "other", "size_bytes": size},
            DeletesError,
            "not a file of pos",
        ),
        ({"kind": "equality", "path": "other", "size_bytes": size}, DeletesError, "newer client"),
        (
            position_file(tmp_path / "p", "p", [(f"{tmp_path}/f", 10)]),
            DeletesError,
            "names a row that",
        ),
    ]

    for delete, kind, message in wrong:
        with pytest.raises(kind, match=message):
            read(tmp_path, files, {"f": [delete]})


@pytest.mark.slow
def test_rows_that_are_named_many_times_count_once(tmp_path: Path) -> None:
    files = [write(tmp_path, f"f{at}", range(at * 10, at * 10 + 10), 10) for at in range(2)]
    named = [(f"{tmp_path}/f{at % 3}", at % 2) for at in range(600_000)]
    positions = position_file(tmp_path / "p", "p", named)

    ids = read(tmp_path, files, {"f0": [positions], "f1": [positions]})[0]

    assert sorted(ids) == [*range(2, 10), *range(12, 20)]


def test_a_vector_is_read_once_for_all_splits_of_its_file(tmp_path: Path) -> None:
    vector = {"inline": None, **file_vector(tmp_path / "vectors", "vectors", [1, 3])}
    splits = [
        Split(at, f"{tmp_path}/f", at * 10, 10, 20, 5, 4, deletes=[vector]) for at in range(2)
    ]
    counts: Counter[str] = Counter()
    nothing = pa.schema([])
    spec = ReadSpec(
        table="t", location=str(tmp_path), data=DATA, hidden=nothing, partition=nothing, output=()
    )

    deleted = DeletedPositions(spec, splits, counts)

    assert [np.asarray(deleted.of(split)).tolist() for split in splits] == [[1, 3]] * 2
    assert counts["delete_files"] == 1
