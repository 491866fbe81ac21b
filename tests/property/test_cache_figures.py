"""Figures of cacheable and cached files equal a count by hand, for any rules and workers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tests.support.tables.inventories import inventory
from windrow_service.planner.caching.cacheable import MarkingRule
from windrow_service.planner.caching.figures import Amount, cache_figures
from windrow_service.planner.caching.file_keys import Holding, file_keys
from windrow_service.planner.pruning.expressions import Comparison

DAYS = 5
HOSTS = "abc"


def table_of(days: list[int], sizes: list[int]) -> pa.Table:
    files = inventory(sizes)
    values = pa.array([{"day": day} for day in days], pa.struct([("day", pa.int32())]))
    return files.set_column(files.schema.get_field_index("partition"), "partition", values)


def amount(sizes: list[int], rows: set[int]) -> Amount:
    return Amount(len(rows), sum(sizes[row] for row in rows))


@st.composite
def days_and_sizes(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    files = draw(st.lists(st.tuples(st.integers(0, DAYS), st.integers(0, 2**40)), max_size=12))
    return [day for day, _ in files], [size for _, size in files]


# For each rule its first day and first file, or None if it marks nothing.
RULES = st.lists(st.none() | st.tuples(st.integers(0, DAYS), st.integers(0, 12)), max_size=3)
# For each worker its host, the files of the table it holds, and other files.
WORKERS = st.lists(
    st.tuples(st.sampled_from(HOSTS), st.sets(st.integers(0, 11)), st.sets(st.integers(0, 9))),
    max_size=5,
)


@given(days_and_sizes(), RULES, WORKERS)
def test_figures_equal_a_count_file_by_file(
    files: tuple[list[int], list[int]],
    rules: list[tuple[int, int] | None],
    workers: list[tuple[str, set[int], set[int]]],
) -> None:
    days, sizes = files
    count = len(days)
    table = table_of(days, sizes)
    keys = file_keys(table)
    others = file_keys(inventory([1] * 10, paths=[f"other{n}" for n in range(10)]))
    held: dict[str, set[int]] = {}
    foreign: dict[str, set[int]] = {}
    holdings = []
    for host, rows, more in workers:
        rows = {row for row in rows if row < count}
        held.setdefault(host, set()).update(rows)
        foreign.setdefault(host, set()).update(more)
        both = np.concatenate([keys[sorted(rows)], others[sorted(more)]])
        holdings.append(Holding(host, 10, np.sort(both)))

    figures = cache_figures(
        table,
        [
            rule and MarkingRule(Comparison("ge", "day", rule[0]), f"f{rule[1]:06d}")
            for rule in rules
        ],
        holdings,
    )

    marked = [
        set() if rule is None else {at for at in range(rule[1], count) if days[at] >= rule[0]}
        for rule in rules
    ]
    cacheable = set[int]().union(*marked)
    cached = set[int]().union(*held.values())
    assert figures.cacheable == amount(sizes, cacheable)
    assert figures.cached == amount(sizes, cacheable & cached)
    assert list(figures.rules) == [(amount(sizes, m), amount(sizes, m & cached)) for m in marked]
    assert [one.host for one in figures.hosts] == sorted(held)
    for one in figures.hosts:
        here = held[one.host] & cacheable
        assert one.cacheable == amount(sizes, here)
        assert one.other_files == len(held[one.host] - cacheable) + len(foreign[one.host])
