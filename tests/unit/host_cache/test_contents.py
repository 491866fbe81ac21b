"""The agent's view of its cache: all keys, changes, and how much fits."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.spark.host_caches import cache_in, key_of, keys_in
from windrow_tables.host_cache import contents
from windrow_tables.host_cache.cache import CacheTroubleError
from windrow_tables.host_cache.opening import open_cache

KIB = 2**10


def test_changes_are_returned_once_with_the_last_state_of_each_entry(tmp_path: Path) -> None:
    cache = cache_in(tmp_path)
    for name in "abc":
        cache.keep(key_of(name), b"content")
    cache.drop(key_of("b"))
    cache.drop(key_of("c"))
    cache.keep(key_of("c"), b"content")

    found = contents.changes(cache, 100)
    contents.settle(cache, found.upto)
    open_cache(str(tmp_path)).drop(key_of("a"))

    assert found.presence == {key_of("a"): True, key_of("b"): False, key_of("c"): True}
    assert contents.changes(cache, 100).presence == {key_of("a"): False}


def test_evictions_are_changes(tmp_path: Path) -> None:
    cache = cache_in(tmp_path, capacity=1024 * KIB)
    for number in range(5):
        cache.keep(key_of(str(number)), bytes(300 * KIB))

    presence = contents.changes(cache, 100).presence

    assert {key for key, is_held in presence.items() if is_held} == keys_in(cache)
    assert {key for key, is_held in presence.items() if not is_held}


def test_pages_hold_every_key_once_sorted_by_table(tmp_path: Path) -> None:
    cache = cache_in(tmp_path)
    expected = [
        key_of(str(number), table=table) for table in ("a", "b.c", "a_") for number in range(7)
    ]
    for key in expected:
        cache.keep(key, b"")

    pages = list(contents.all_keys(cache, 4))

    assert [len(page) for page in pages] == [4, 4, 4, 4, 4, 1]
    keys = [key for page in pages for key in page]
    assert keys == sorted(expected)


@pytest.mark.parametrize("size_bytes", [1_000, 16 * KIB, 50 * KIB])
def test_a_cache_filled_up_to_its_stated_size_evicts_nothing(
    tmp_path: Path, size_bytes: int
) -> None:
    capacity = 8 * KIB * KIB
    cache = cache_in(tmp_path, capacity=capacity)
    assert contents.room_bytes(cache) == capacity
    evicted = number = 0
    while not evicted:
        evicted = cache.keep(key_of(f"{number:060}", size_bytes), bytes(size_bytes))
        number += 1

    room = contents.room_bytes(cache)

    assert contents.held_bytes(cache) == size_bytes * (number - evicted)
    assert capacity // 2 < room <= contents.held_bytes(cache) * 1.02


def test_bytes_held_follow_entries_that_are_replaced_and_removed(tmp_path: Path) -> None:
    cache = cache_in(tmp_path)
    cache.keep(key_of("a"), bytes(100))
    cache.keep(key_of("b"), bytes(100 * KIB))
    cache.keep(key_of("a"), bytes(300))
    assert contents.held_bytes(cache) == 100 * KIB + 300

    cache.drop(key_of("b"))

    assert contents.held_bytes(cache) == 300


def test_files_that_no_entry_names_are_removed_at_the_start(tmp_path: Path) -> None:
    cache = cache_in(tmp_path)
    cache.keep(key_of("a"), bytes(100 * KIB))
    (kept,) = (tmp_path / "files").glob("*/*")
    orphan = kept.with_name(f"{kept.name[:2]}{'0' * 30}")
    orphan.write_bytes(b"left by a crash")
    (tmp_path / "incoming" / ("1" * 32)).write_bytes(b"left by a crash")

    again = cache_in(tmp_path)

    assert again.get(key_of("a")) == bytes(100 * KIB)
    assert not orphan.exists()
    assert list((tmp_path / "incoming").iterdir()) == []


def test_a_cache_whose_capacity_shrinks_removes_the_excess(tmp_path: Path) -> None:
    cache = cache_in(tmp_path)
    for number in range(20):
        cache.keep(key_of(str(number)), bytes(100 * KIB))

    smaller = cache_in(tmp_path, capacity=1024 * KIB)

    assert smaller.volume() <= 1024 * KIB
    assert 0 < len(keys_in(smaller)) < 20
    assert open_cache(str(tmp_path)).folder.capacity_bytes == 1024 * KIB


def test_a_replaced_damaged_cache_is_empty(tmp_path: Path) -> None:
    cache = cache_in(tmp_path)
    cache.keep(key_of("a"), b"content")
    cache.close()
    (tmp_path / "files" / "entries.db").write_bytes(b"no database" * 1000)
    with pytest.raises(CacheTroubleError):
        cache.get(key_of("a"))

    anew = contents.make_anew(cache.folder)

    assert not (tmp_path / "damaged").exists()
    assert anew.get(key_of("a")) is None
    anew.keep(key_of("a"), b"content")
    assert open_cache(str(tmp_path)).get(key_of("a")) == b"content"
