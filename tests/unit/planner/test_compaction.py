"""Which partitions are worth compacting, and why others are not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from tests.support.tables.inventories import inventory
from windrow_service.planner.policy import DEFAULT_OPEN_FILE_COST, READ_BYTES_PER_SECOND
from windrow_service.planner.upkeep.compaction import (
    CHOSEN,
    VERDICTS,
    Candidates,
    CompactionPolicy,
    find_candidates,
    page_of,
)

KIB = 2**10
MIB = 2**20


def policy(**fields: Any) -> CompactionPolicy:
    defaults: dict[str, Any] = {
        "target_bytes": MIB,
        "min_files": 2,
        "min_small_ratio": 0.0,
        "worth_reads": 10**9,
        "max_bytes": 2**40,
        "max_files": 10**6,
    }
    return CompactionPolicy(**{**defaults, **fields})


def table_of(folders: dict[str, Sequence[int]], *, rows: int = 100_000, **columns: Any) -> pa.Table:
    """Return an inventory with files of these sizes in these folders, in path order."""
    paths = [
        f"{folder}/f{n:05d}" if folder else f"f{n:05d}"
        for folder, sizes in folders.items()
        for n in range(len(sizes))
    ]
    sizes = [size for held in folders.values() for size in held]
    files = inventory(sizes, paths=paths, **columns)
    at = files.schema.get_field_index("row_count")
    files = files.set_column(at, files.schema.field(at), pa.array([rows] * len(files)))
    return files.sort_by("path")


def judged(
    files: pa.Table,
    partition: Sequence[str] = ("ds",),
    *,
    is_bucketed: bool = False,
    **limits: Any,
) -> Candidates:
    return find_candidates(
        files,
        pa.schema([(name, pa.string()) for name in partition]),
        joins=False,
        columns=3,
        is_bucketed=is_bucketed,
        policy=policy(**limits),
    )


def verdicts(found: Candidates) -> dict[str, str]:
    return {
        folder: VERDICTS[verdict]
        for folder, verdict in zip(found.folders.to_pylist(), found.verdict.tolist(), strict=True)
    }


def test_small_files_are_rewritten_and_the_others_stay() -> None:
    files = table_of({"ds=1": [300 * KIB] * 4 + [600 * KIB, 3 * MIB], "ds=2": [MIB] * 5})

    found = judged(files)

    assert verdicts(found) == {"ds=1": "chosen", "ds=2": "large_files"}
    assert found.all_files.tolist() == [6, 5]
    assert found.files.tolist() == [4, 0]
    assert found.size_bytes.tolist() == [1200 * KIB, 0]
    assert found.rows.tolist() == [400_000, 0]
    assert found.becomes.tolist()[0] == 1
    paths = files["path"].take(pa.array(found.rows_of(found.chosen))).to_pylist()
    assert paths == [f"ds=1/f{n:05d}" for n in range(4)]


def test_only_files_below_a_size_are_rewritten_if_one_is_given() -> None:
    files = table_of({"ds=1": [300 * KIB, 10 * KIB, 20 * KIB], "ds=2": [300 * KIB] * 3})

    smallest, no_more = judged(files, below_bytes=20 * KIB + 1), judged(files, below_bytes=MIB)

    assert verdicts(smallest) == {"ds=1": "chosen", "ds=2": "large_files"}
    assert smallest.size_bytes.tolist() == [30 * KIB, 0]
    assert no_more.files.tolist() == [3, 3]


def test_a_partition_is_left_alone_for_the_first_reason_that_holds() -> None:
    tiny = [10 * KIB] * 5
    files = table_of(
        {
            "ds=1": tiny,
            "ds=2": tiny[:4],
            "ds=3": [*tiny, *[MIB] * 6],
            "ds=4": [400 * KIB] * 5,
            "ds=5/sub": tiny,
            "country=SE": tiny,
            "ds=a b": tiny,
            "ds=a:b": tiny,
            "ds=a%3Ab": tiny,
            "ds=a%20b": tiny,
            # Might be Hive's name for null once it is decoded.
            "ds=%5F": tiny,
            "ds=": tiny,
        }
    )

    found = judged(files, min_files=5, min_small_ratio=0.5, worth_reads=500)

    assert verdicts(found) == {
        "ds=1": "chosen",
        "ds=2": "few_files",
        "ds=3": "small_ratio",
        "ds=4": "not_worth",
        "ds=5/sub": "layout",
        "country=SE": "layout",
        "ds=a b": "chosen",
        "ds=a:b": "chosen",
        "ds=a%3Ab": "chosen",
        "ds=a%20b": "chosen",
        "ds=%5F": "layout",
        "ds=": "layout",
    }


def test_a_single_small_file_cannot_become_fewer() -> None:
    assert verdicts(judged(table_of({"ds=1": [500 * KIB, 800 * KIB]}))) == {"ds=1": "few_files"}


def test_gains_do_not_depend_on_min_files() -> None:
    files = table_of({"ds=1": [4 * KIB] * 3, "ds=2": [8 * MIB] * 3, "ds=3": [4 * KIB]})

    found = judged(files, target_bytes=128 * MIB, min_files=5, worth_reads=1_000)

    assert set(verdicts(found).values()) == {"few_files"}
    assert found.pays.tolist() == [True, False, False]


def test_the_predicted_files_are_those_of_an_exact_plan() -> None:
    files = table_of({"ds=1": [500 * KIB] * 2, "ds=2": [499 * KIB] * 3, "ds=3": [200 * KIB] * 60})

    assert judged(files).becomes.tolist() == [1, 2, 12]


def test_a_partition_with_delete_files_is_left_alone() -> None:
    files = table_of({"ds=1": [KIB] * 3}, deletes=[(0, 0), (1, 9), (0, 0)])

    assert verdicts(judged(files)) == {"ds=1": "deletes"}


def test_files_without_rows_are_left_alone() -> None:
    assert verdicts(judged(table_of({"ds=1": [KIB] * 3}, rows=0))) == {"ds=1": "no_rows"}


def test_each_bucket_counts_separately() -> None:
    files = table_of({"ds=1": [KIB] * 5}, buckets=[0, 1, 0, 1, None])

    found = judged(files, is_bucketed=True)

    assert found.bucket.tolist() == [-1, 0, 1]
    assert found.files.tolist() == [1, 2, 2]
    assert [VERDICTS[at] for at in found.verdict] == ["no_bucket", "chosen", "chosen"]


def test_a_table_without_partitions_is_one_partition() -> None:
    found = judged(table_of({"": [KIB] * 5}), ())

    assert verdicts(found) == {"": "chosen"}
    assert found.becomes.tolist() == [1]


def test_a_table_without_files_has_no_candidates() -> None:
    found = judged(inventory([]))

    assert len(found) == len(found.chosen) == 0
    assert len(page_of(found, 0, max_candidates=10, policy=policy())) == 0


@pytest.mark.parametrize("limits", [{"max_files": 4}, {"max_bytes": 4 * MIB // 10}])
def test_a_partition_above_the_limits_is_divided_into_pieces(limits: dict[str, int]) -> None:
    found = judged(
        table_of({"ds=1": [MIB // 10] * 3, "ds=2": [MIB // 10] * 9, "ds=3": [MIB]}), **limits
    )

    assert found.folders.to_pylist() == ["ds=1", "ds=2", "ds=2", "ds=2", "ds=3"]
    assert found.files.tolist() == [3, 4, 4, 1, 0]
    assert found.all_files.tolist() == [3, 9, 9, 9, 1]
    assert [VERDICTS[at] for at in found.verdict] == [
        "chosen",
        "chosen",
        "chosen",
        "few_files",
        "large_files",
    ]


def test_a_page_fits_a_batch_and_holds_at_least_one_candidate() -> None:
    files = table_of({f"ds={n}": [KIB] * 10 for n in range(5)})
    found = judged(files)

    def page(offset: int, **limits: Any) -> list[int]:
        at = page_of(found, offset, max_candidates=3, policy=policy(**limits))
        return at.tolist()

    assert page(0) == [0, 1, 2]
    assert page(3) == [3, 4]
    assert page(5) == []
    assert page(1, max_bytes=20 * KIB) == [1, 2]
    assert page(1, max_files=29) == [1, 2]
    assert page(1, max_bytes=1) == [1]


def test_the_gain_is_the_open_cost_of_the_removed_files() -> None:
    found = judged(table_of({"ds=1": [KIB] * 101}))

    assert found.verdict.tolist() == [CHOSEN]
    assert found.gain_seconds[0] == 100 * DEFAULT_OPEN_FILE_COST / READ_BYTES_PER_SECOND
    assert found.cost_seconds[0] > 101 * DEFAULT_OPEN_FILE_COST / READ_BYTES_PER_SECOND
