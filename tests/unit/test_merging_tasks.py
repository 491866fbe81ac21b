"""`windrow_tables.merging.task`: what becomes of the files that a task is given."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from windrow_tables.merging import files
from windrow_tables.merging.task import Job, Outcome, Piece, merge_pieces


@pytest.fixture
def staging(tmp_path: Path) -> Path:
    folder = tmp_path / "staging"
    folder.mkdir()
    return folder


@pytest.fixture
def table(tmp_path: Path) -> Path:
    folder = tmp_path / "table"
    (folder / "k=1").mkdir(parents=True)
    return folder


def run(
    table: Path, staging: Path, *pieces: Piece, sort: Sequence[tuple[str, bool, bool]] = ()
) -> list[Outcome]:
    job = Job(str(table), str(staging), sort, 2**20, 1.0, 2**24)
    return [Outcome(*one) for one in merge_pieces(job, pieces)]


def write(folder: Path, name: str, rows: pa.Table) -> str:
    pq.write_table(rows, folder / "k=1" / name)
    return f"k=1/{name}"


def test_files_that_are_alike_are_merged_and_others_stay(table: Path, staging: Path) -> None:
    one, other = pa.table({"id": [1]}), pa.table({"id": [2], "more": [2]})
    paths = [write(table, f"{at}", other if at == 2 else one) for at in range(5)]

    (outcome,) = run(table, staging, (7, "k=1", paths))

    assert outcome.piece == 7
    ((path, rows, size_bytes),) = outcome.new_files
    assert (rows, size_bytes) == (4, (staging / path).stat().st_size)
    assert pq.read_table(staging / path).equals(pa.concat_tables([one] * 4))
    assert [path for path, *_ in outcome.old_files] == [*paths[:2], *paths[3:]]
    assert outcome.left == (
        "k=1/2 is not like other files: they differ in column 'more', which only some have"
    )


def test_files_that_are_gone_or_damaged_do_not_keep_others_from_being_merged(
    table: Path, staging: Path
) -> None:
    paths = [write(table, f"{at}", pa.table({"id": [at]})) for at in range(4)]
    (table / paths[1]).unlink()
    (table / paths[2]).write_bytes(b"PAR1")

    (outcome,) = run(table, staging, (0, "k=1", paths))

    assert [path for path, *_ in outcome.old_files] == [paths[0], paths[3]]
    assert outcome.vanished == [paths[1]]
    assert outcome.left is not None
    assert outcome.left.startswith("k=1/2 cannot be merged: it does not end as Parquet files do")


def test_a_file_outside_of_its_partitions_folder_is_moved_alone(table: Path, staging: Path) -> None:
    path = write(table, "0", pa.table({"id": [1]}))

    (outcome,) = run(table, staging, (0, "k=01", [path]))

    assert [len(outcome.new_files), len(outcome.old_files), outcome.left] == [1, 1, None]


def test_files_that_become_no_fewer_since_they_are_sorted_stay(
    table: Path, staging: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_MAX_SORTED_BYTES", 10)
    paths = [write(table, f"{at}", pa.table({"id": range(at, at + 9)})) for at in range(2)]

    (outcome,) = run(table, staging, (0, "k=1", paths), sort=[("id", False, True)])

    assert (outcome.new_files, outcome.old_files) == ([], [])
    assert outcome.left == "k=1/0 and files like it are as large as files that are sorted can be"


def test_an_attempt_that_comes_too_late_writes_nothing(table: Path, staging: Path) -> None:
    paths = [write(table, f"{at}", pa.table({"id": [at]})) for at in range(2)]
    staging.rmdir()

    with pytest.raises(FileNotFoundError):
        run(table, staging, (0, "k=1", paths))


def test_two_attempts_write_different_files(table: Path, staging: Path) -> None:
    paths = [write(table, f"{at}", pa.table({"id": [at]})) for at in range(2)]

    made = {run(table, staging, (0, "k=1", paths))[0].new_files[0][0] for _ in range(2)}

    assert len(made) == 2


@pytest.mark.parametrize(
    ("other", "difference"),
    [
        (pa.table({"id": pa.array([1], pa.int32())}), "the type or a property of column 'id'"),
        (pa.table({"id": [1]}).replace_schema_metadata({"k": "v"}), "the metadata key 'k'"),
    ],
)
def test_the_reason_says_in_what_files_differ(
    table: Path, staging: Path, other: pa.Table, difference: str
) -> None:
    paths = [write(table, "0", pa.table({"id": [1]})), write(table, "1", other)]

    (outcome,) = run(table, staging, (0, "k=1", paths))

    assert outcome.left is not None
    assert outcome.left.endswith(f"they differ in {difference}")


def test_a_partition_that_was_written_to_lately_is_left_when_its_turn_comes(
    table: Path, staging: Path
) -> None:
    paths = [write(table, f"{at}", pa.table({"id": [at]})) for at in range(2)]
    # Of this piece of work itself, and hidden: neither is a write.
    for name in ("part-own-c000.parquet", "_SUCCESS"):
        (table / "k=1" / name).touch()
    for path in paths:
        os.utime(table / path, (0, time.time() - 100))
    job = Job(str(table), str(staging), [], 2**20, 1.0, 2**24, 3_600.0, ("own",))

    ((busy,), (quiet,)) = (
        merge_pieces(one, [(0, "k=1", paths)]) for one in (job, job._replace(quiet_seconds=90.0))
    )

    assert Outcome(*busy).is_busy
    assert Outcome(*busy).new_files == []
    assert "and its policy asks for 3,600 s without a write" in (Outcome(*busy).left or "")
    assert len(Outcome(*quiet).old_files) == 2
    assert not Outcome(*quiet).is_busy
