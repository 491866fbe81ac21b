"""File keys, and the hosts that hold them, compared with plain Python."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from windrow_service.cache_map.keys import changed, cut_shards, shards_of
from windrow_service.planner.caching.file_keys import file_keys

WORD = 2**64
INT64 = st.integers(-(2**63), 2**63 - 1)
PATHS = st.text(st.characters(codec="utf-8"), max_size=30) | st.text("ab", max_size=9)
FILES = st.lists(st.tuples(PATHS, INT64, INT64), max_size=30)
KEYS = st.lists(st.integers(0, 20).map(lambda n: n * (WORD // 20 - 1)), max_size=30)


def table(files: list[tuple[str, int, int]], cuts: tuple[int, ...] = ()) -> pa.Table:
    whole = pa.table(
        [
            pa.array([file[0] for file in files], pa.string()),
            pa.array([file[1] for file in files], pa.int64()),
            pa.array([file[2] for file in files], pa.int64()),
        ],
        names=["path", "size_bytes", "mtime_ns"],
    )
    ends = [0, *sorted(min(cut, len(files)) for cut in cuts), len(files)]
    return pa.concat_tables([whole.slice(a, b - a) for a, b in pairwise(ends)])


def slow_key(path: str, size_bytes: int, mtime_ns: int) -> int:
    text = path.encode()
    key = len(text)
    for at in range(0, len(text), 8):
        key = (key ^ int.from_bytes(text[at : at + 8], "little")) * 0x9E3779B97F4A7C15 % WORD
        key ^= key >> 32
    for value in (size_bytes, mtime_ns):
        key = ((key ^ value % WORD) + 0x9E3779B97F4A7C15) % WORD
        key = (key ^ key >> 30) * 0xBF58476D1CE4E5B9 % WORD
        key = (key ^ key >> 27) * 0x94D049BB133111EB % WORD
        key ^= key >> 31
    return key


@given(FILES, st.tuples(st.integers(0, 30), st.integers(0, 30)))
def test_a_key_is_a_hash_of_path_size_and_time_however_columns_are_chunked(
    files: list[tuple[str, int, int]], cuts: tuple[int, int]
) -> None:
    keys = [slow_key(*file) for file in files]

    assert file_keys(table(files)).tolist() == keys
    assert file_keys(table(files, cuts)).tolist() == keys


def test_keys_stay_stable() -> None:
    files = [("ds=2026-11-01/part-00000.parquet", 1_234, 1_700_000_000_000_000_000), ("", 0, 0)]

    assert file_keys(table(files)).tolist() == [
        7_234_243_971_432_282_222,
        12_035_550_249_420_947_055,
    ]


def test_files_that_differ_in_anything_have_different_keys() -> None:
    files = [
        (f"ds={day}/part-{part:05d}.parquet", size_bytes, mtime_ns)
        for day in range(20)
        for part in range(50)
        for size_bytes in range(10)
        for mtime_ns in range(10)
    ]

    assert len(np.unique(file_keys(table(files)))) == len(files)


@given(KEYS, KEYS, KEYS)
def test_changes_of_held_files_are_those_of_a_set(
    held: list[int], added: list[int], removed: list[int]
) -> None:
    after = changed(
        np.unique(np.array(held, np.uint64)),
        np.array(added, np.uint64),
        np.array(removed, np.uint64),
    )

    assert after.tolist() == sorted((set(held) - set(removed)) | set(added))
    shards = shards_of(after)
    assert shards == sorted({key >> 56 for key in after.tolist()})
    assert np.concatenate([*cut_shards(after, shards), after[:0]]).tolist() == after.tolist()
