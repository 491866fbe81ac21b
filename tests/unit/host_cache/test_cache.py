"""The cache of a host: entries are stored, returned and evicted."""

from __future__ import annotations

import os
import pickle
import sqlite3
from pathlib import Path

import pytest

from tests.support.spark.host_caches import cache_in, damage_rows, key_of, keys_in
from windrow_tables.host_cache.cache import CacheTroubleError, FileCache, FileKey, Write
from windrow_tables.host_cache.opening import open_cache

SMALL, LARGE = 16 * 2**10, 300 * 2**10


def content_of(size_bytes: int, seed: int = 0) -> bytes:
    return bytes((seed + 7 * i) % 251 for i in range(size_bytes))


def writing(content: bytes, pieces: int = 3) -> object:
    def copy(write: Write) -> None:
        step = len(content) // pieces + 1
        for start in range(0, len(content), step):
            write(content[start : start + step])

    return copy


def files_of(folder: Path) -> list[Path]:
    return list((folder / "files").glob("*/*")) + list((folder / "incoming").iterdir())


@pytest.mark.parametrize("size_bytes", [0, 1, SMALL, 32 * 2**10, LARGE])
def test_stored_entries_are_returned_to_everyone_who_opens_the_folder(
    tmp_path: Path, size_bytes: int
) -> None:
    cache = cache_in(tmp_path)
    content = content_of(size_bytes)

    cache.keep(key_of("a"), content)

    other = open_cache(str(tmp_path))
    assert other.get(key_of("a")) == content
    assert other.get(key_of("b")) is None
    assert (other.holds(key_of("a")), other.holds(key_of("b"))) == (True, False)


def test_a_large_file_is_stored_piece_by_piece_and_opened(tmp_path: Path) -> None:
    cache = cache_in(tmp_path)
    content = content_of(LARGE)

    cache.keep_copy(key_of("a"), LARGE, writing(content))

    file = cache.open(key_of("a"))
    assert file is not None
    with file:
        assert file.read() == content
    assert len(files_of(tmp_path)) == 1


def test_a_copy_that_ends_in_an_error_leaves_nothing(tmp_path: Path) -> None:
    cache = cache_in(tmp_path)

    def copy(write: Write) -> None:
        write(b"some")
        raise PermissionError("the source is gone")

    with pytest.raises(PermissionError):
        cache.keep_copy(key_of("a"), LARGE, copy)

    assert cache.get(key_of("a")) is None
    assert files_of(tmp_path) == []


@pytest.mark.parametrize("changed", ["table", "location", "size_bytes", "mtime_ns", "path"])
def test_files_that_differ_in_any_property_have_different_keys(changed: str) -> None:
    key = FileKey("t", "/t", 1, 2, 'ds=1/"a"\n,\udcff.parquet')

    other = key._replace(**{changed: 3 if isinstance(getattr(key, changed), int) else "other"})

    assert other.text() != key.text()
    assert FileKey.of(key.text()) == key


@pytest.mark.parametrize("size_bytes", [SMALL, LARGE])
def test_a_damaged_entry_is_not_returned_and_is_removed(tmp_path: Path, size_bytes: int) -> None:
    cache = cache_in(tmp_path)
    content = os.urandom(size_bytes)
    cache.keep(key_of("a"), content)
    cache.close()
    if size_bytes == SMALL:
        damage_rows(tmp_path, content, at=5_000)
    else:
        (file,) = files_of(tmp_path)
        with file.open("r+b") as opened:
            opened.write(b"damage")

    assert cache.get(key_of("a")) is None
    assert not cache.holds(key_of("a"))
    assert files_of(tmp_path) == []


def test_a_damaged_large_file_is_not_opened_and_is_removed(tmp_path: Path) -> None:
    cache = cache_in(tmp_path)
    cache.keep(key_of("a"), content_of(LARGE))
    (file,) = files_of(tmp_path)
    with file.open("r+b") as opened:
        opened.seek(LARGE - 1)
        opened.write(b"\xff")

    assert cache.open(key_of("a")) is None
    assert not cache.holds(key_of("a"))


def test_an_entry_whose_file_is_gone_is_missing(tmp_path: Path) -> None:
    cache = cache_in(tmp_path)
    cache.keep(key_of("a"), content_of(LARGE))
    (file,) = files_of(tmp_path)
    file.unlink()

    assert cache.get(key_of("a")) is None
    assert cache.open(key_of("a")) is None
    cache.keep(key_of("a"), content_of(LARGE, 1))
    assert cache.get(key_of("a")) == content_of(LARGE, 1)


def test_an_entry_under_another_key_is_not_returned(tmp_path: Path) -> None:
    cache = cache_in(tmp_path)
    cache.keep(key_of("a"), content_of(SMALL))

    cache.connection.execute("UPDATE Entries SET key = ?", (key_of("b"),))

    assert cache.get(key_of("b")) is None


class Planted:
    """An object that leaves a trace when it is unpickled."""

    unpickled = False

    def __reduce__(self) -> tuple[object, ...]:
        return setattr, (Planted, "unpickled", True)


@pytest.mark.parametrize("size_bytes", [10, LARGE])
def test_nothing_in_the_folder_is_unpickled(tmp_path: Path, size_bytes: int) -> None:
    cache = cache_in(tmp_path)
    cache.keep(key_of("a"), content_of(size_bytes))
    evil = pickle.dumps(Planted())
    for file in files_of(tmp_path):
        file.write_bytes(evil)

    if size_bytes == 10:
        cache.connection.execute("UPDATE Entries SET content = ?", (evil,))

    assert cache.get(key_of("a")) is None
    assert cache.open(key_of("a")) is None
    assert not Planted.unpickled


def test_the_least_recently_read_entry_is_evicted(tmp_path: Path) -> None:
    cache = cache_in(tmp_path, capacity=4 * LARGE)
    for name in "abc":
        cache.keep(key_of(name), content_of(LARGE))
    cache.note([(2e9, key_of("a")), (2e9 + 1, key_of("c"))], {})

    evicted = cache.keep(key_of("d"), content_of(LARGE))

    # "a" and "c" are noted as read in 2033, so even "d" is older.
    assert evicted == 1
    assert keys_in(cache) == {key_of(name) for name in "acd"}
    assert cache.volume() <= 4 * LARGE


def test_space_of_removed_entries_is_returned_to_the_disk(tmp_path: Path) -> None:
    cache = cache_in(tmp_path)
    for i in range(100):
        cache.keep(key_of(f"{i}"), content_of(SMALL))
    before = cache.volume()

    for i in range(100):
        cache.drop(key_of(f"{i}"))
    cache.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    assert before > 100 * SMALL
    assert (tmp_path / "files" / "entries.db").stat().st_size == cache.volume() < 20 * SMALL


def test_a_file_larger_than_half_the_cache_is_refused_and_evicts_nothing(tmp_path: Path) -> None:
    cache = cache_in(tmp_path, capacity=4 * LARGE)
    cache.keep(key_of("a"), content_of(LARGE))

    with pytest.raises(CacheTroubleError, match="too large"):
        cache.keep(key_of("b"), bytes(2 * LARGE + 1))

    assert keys_in(cache) == {key_of("a")}


def test_counts_add_up_and_persist(tmp_path: Path) -> None:
    cache = cache_in(tmp_path)

    cache.note([], {"hits": 2, "misses": 1, "evictions": 0})
    open_cache(str(tmp_path)).note([], {"hits": 3})

    assert cache_in(tmp_path).counts() == {"hits": 5, "misses": 1}


def test_a_broken_database_is_trouble_and_marked_for_the_agent(tmp_path: Path) -> None:
    cache = cache_in(tmp_path)
    cache.keep(key_of("a"), content_of(SMALL))
    cache.close()
    database = tmp_path / "files" / "entries.db"
    database.write_bytes(b"this is no database" * 1000)

    with pytest.raises(CacheTroubleError):
        cache.get(key_of("a"))

    assert (tmp_path / "damaged").exists()


def test_waiting_too_long_to_write_is_trouble_but_not_damage(tmp_path: Path) -> None:
    cache: FileCache = cache_in(tmp_path)
    cache.connection.execute("PRAGMA busy_timeout = 10")
    other = sqlite3.connect(tmp_path / "files" / "entries.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    with pytest.raises(CacheTroubleError):
        cache.keep(key_of("a"), content_of(SMALL))
    other.close()

    assert not (tmp_path / "damaged").exists()
    cache.keep(key_of("a"), content_of(SMALL))
    assert cache.get(key_of("a")) == content_of(SMALL)
