"""Laws of a host's cache, for any reads in any order by any number of readers."""

from __future__ import annotations

import tempfile
import threading
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.support.laws import examples
from tests.support.spark.host_caches import cache_in, key_of, keys_in
from windrow_tables.host_cache.cache import Write
from windrow_tables.host_cache.uses import CacheUse

KIB = 2**10
CAPACITY = 1024 * KIB
# Around the size from which entries get a file of their own, up to more than the cache accepts.
SIZES = (0, 1, 16 * KIB, 32 * KIB - 1, 32 * KIB, 200 * KIB, 700 * KIB, 1100 * KIB)

files = st.tuples(st.integers(0, 5), st.sampled_from(SIZES))


def content_of(file: tuple[int, int]) -> bytes:
    number, size_bytes = file
    return bytes([number]) * size_bytes


def name_of(file: tuple[int, int]) -> str:
    number, size_bytes = file
    return key_of(str(number), size_bytes)


class Source:
    """The original files, and how often each was fetched."""

    def __init__(self) -> None:
        self.fetched: list[tuple[int, int]] = []

    def get(self, use: CacheUse, file: tuple[int, int], large: bool) -> bytes:
        def read() -> bytes:
            self.fetched.append(file)
            return content_of(file)

        def copy(write: Write) -> None:
            self.fetched.append(file)
            write(content_of(file))

        if not large:
            return use.fetch(name_of(file), read)
        opened = use.open(name_of(file), file[1], copy)
        if opened is None:
            return read()
        with opened:
            return opened.read()


reads = st.tuples(files, st.booleans())


@examples(25)
@given(st.lists(st.lists(reads, max_size=8), min_size=1, max_size=4))
def test_reads_return_the_right_bytes_and_the_cache_keeps_its_capacity(
    tasks: list[list[tuple[tuple[int, int], bool]]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        cache = cache_in(Path(folder), capacity=CAPACITY)
        source = Source()
        for task in tasks:
            with CacheUse(cache) as use:
                for file, large in task:
                    assert source.get(use, file, large) == content_of(file)
                    assert cache.volume() <= CAPACITY
        counts = cache.counts()
        done = sum(map(len, tasks))
        assert sum(counts.get(name, 0) for name in ("hits", "misses", "failures")) == done
        # Every entry held or evicted was fetched once, and no partial write remains.
        assert len(keys_in(cache)) == counts.get("misses", 0) - counts.get("evictions", 0)
        assert list((Path(folder) / "incoming").iterdir()) == []
        cache.close()


@examples(30)
@given(st.lists(files, min_size=1, max_size=20))
def test_files_that_fit_together_are_fetched_once(wanted: list[tuple[int, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        cache = cache_in(Path(folder), capacity=CAPACITY * 100)
        source = Source()
        for file in wanted:
            with CacheUse(cache) as use:
                assert source.get(use, file, large=False) == content_of(file)

        assert sorted(source.fetched) == sorted(set(wanted))
        cache.close()


@examples(15)
@given(st.lists(st.lists(files, min_size=1, max_size=6), min_size=2, max_size=4))
def test_concurrent_threads_get_the_right_bytes_and_fetch_each_file_once(
    tasks: list[list[tuple[int, int]]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        cache = cache_in(Path(folder), capacity=CAPACITY * 100)
        source = Source()
        wrong: list[tuple[int, int]] = []

        def run(task: list[tuple[int, int]]) -> None:
            with CacheUse(cache) as use:
                wrong.extend(
                    file for file in task if source.get(use, file, large=False) != content_of(file)
                )
            cache.close()

        threads = [threading.Thread(target=run, args=(task,)) for task in tasks]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert wrong == []
        assert sorted(source.fetched) == sorted({file for task in tasks for file in task})
        assert sum(cache.counts().values()) >= sum(map(len, tasks))
        cache.close()


@examples(20)
@given(st.permutations(range(6)), st.lists(st.integers(0, 5), max_size=12))
def test_the_least_recently_read_entry_is_evicted_first(order: list[int], again: list[int]) -> None:
    size_bytes = 100 * KIB
    with tempfile.TemporaryDirectory() as folder:
        cache = cache_in(Path(folder))
        for number in order:
            cache.keep(name_of((number, size_bytes)), content_of((number, size_bytes)))
        reads_ = [*order, *again]
        for at, number in enumerate(reads_):
            # An hour apart, as reads close together count as one.
            cache.note([(2e9 + 3600 * at, name_of((number, size_bytes)))], {})
        last = {number: at for at, number in enumerate(reads_)}
        oldest = min(last, key=lambda number: last[number])

        before = keys_in(cache)
        cache.folder = cache.folder._replace(capacity_bytes=cache.volume() - 1)
        cache.shrink()

        assert before - keys_in(cache) == {name_of((oldest, size_bytes))}
        cache.close()
