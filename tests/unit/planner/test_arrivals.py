"""When files came into partitions: by day, late ones counted apart."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence
from datetime import date, datetime, timedelta, timezone

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.laws import examples
from windrow_service.planner.upkeep.arrivals import (
    ArrivalLimits,
    Arrived,
    days_of,
    find_arrivals,
)

DAY = timedelta(days=1)


def inventory(*files: tuple[str, str, int]) -> pa.Table:
    """Return files of a path, the moment when they came, and their size."""
    moments = [datetime.fromisoformat(at).replace(tzinfo=timezone.utc) for _, at, _ in files]
    return pa.table(
        {
            "path": pa.array([path for path, _, _ in files], pa.string()),
            "mtime_ns": pa.array([int(at.timestamp()) * 10**9 for at in moments], pa.int64()),
            "size_bytes": pa.array([size for _, _, size in files], pa.int64()),
        }
    )


FILES = inventory(
    ("ds=2026-11-02/a", "2026-11-02T10:00:00", 10),
    ("ds=2026-11-02/b", "2026-11-03T23:59:59", 20),
    ("ds=2026-11-02/c", "2026-11-04T00:00:00", 30),
    ("ds=2026-11-04/d", "2026-11-04T12:00:00", 40),
    ("ds=2026-10-01/e", "2026-10-01T12:00:00", 50),
)


def limits(days: int, partitions: int = 10, rows: int = 10) -> ArrivalLimits:
    return ArrivalLimits(days=days, partitions=partitions, rows=rows)


def arrived(rows: Sequence[Arrived]) -> list[tuple[str, int, int, int, int]]:
    """Return rows of arrivals, each with its folder, day of the month, files, bytes and late files."""
    return [(one.folder, one.day.day, one.files, one.size_bytes, one.late_files) for one in rows]


def test_files_count_by_folder_and_day_and_are_late_from_the_second_day_on() -> None:
    arrivals = find_arrivals(FILES, limits(3))

    assert arrivals.days == [date(2026, 11, 2), date(2026, 11, 3), date(2026, 11, 4)]
    first = [("ds=2026-11-02", 2, 1, 10, 0), ("ds=2026-11-02", 3, 1, 20, 0)]
    first.append(("ds=2026-11-02", 4, 1, 30, 1))
    second = [("ds=2026-11-04", 4, 1, 40, 0)]
    newest = [(folder, arrived(rows)) for folder, rows in arrivals.newest]
    assert newest == [("ds=2026-11-02", first), ("ds=2026-11-04", second)]
    assert arrived(arrivals.latest) == [first[2], *second, first[1], first[0]]
    assert arrived(arrivals.late) == [first[2]]
    assert (arrivals.count, arrivals.names_days) == (4, True)
    assert (arrivals.late_partitions, arrivals.late_files) == ([0, 0, 1], [0, 0, 1])


def test_no_more_partitions_and_rows_are_told_than_are_wanted() -> None:
    arrivals = find_arrivals(FILES, limits(60, partitions=2, rows=3))

    # Of the two with files on the last day, both; of those before, none.
    assert [folder for folder, _ in arrivals.newest] == ["ds=2026-11-02", "ds=2026-11-04"]
    assert [(one.folder[-2:], one.day.day) for one in arrivals.latest] == [
        ("02", 4),
        ("04", 4),
        ("02", 3),
    ]
    assert arrivals.count == 5
    one = find_arrivals(FILES, limits(60, partitions=1))
    assert [folder for folder, _ in one.newest] == ["ds=2026-11-04"]


def test_files_that_a_rewrite_made_are_not_late() -> None:
    begin = int(datetime(2026, 11, 4, tzinfo=timezone.utc).timestamp()) * 10**9

    assert find_arrivals(FILES, limits(3), [(begin - 1, begin + 1)]).late == []
    assert len(find_arrivals(FILES, limits(3), [(begin + 1, begin + 2)]).late) == 1


def test_nothing_is_late_without_days_or_files() -> None:
    plain = find_arrivals(inventory(("region=se/a", "2026-11-02T10:00:00", 1)), limits(7))
    empty = find_arrivals(FILES.slice(0, 0), limits(7))

    assert (plain.late, plain.names_days, plain.count) == ([], False, 1)
    assert (len(empty.days), empty.newest, empty.latest, empty.count) == (7, [], [], 0)
    assert empty.late_files == [0] * 7


def test_counting_needs_memory_for_files_and_not_for_each_partition_on_each_day() -> None:
    count, days = 20_000, 1_000
    files = pa.table(
        {
            "path": [f"id={at:05d}/a" for at in range(count)],
            "mtime_ns": pa.array((20_000 + np.arange(count) % days) * 86_400 * 10**9, pa.int64()),
            "size_bytes": pa.array(np.ones(count, np.int64)),
        }
    )
    tracemalloc.start()
    arrivals = find_arrivals(files, limits(days))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert arrivals.count == count
    # A single byte for each partition and day would be more.
    assert peak < count * days


@examples(200)
@given(
    files=st.lists(
        st.tuples(st.integers(1, 5), st.integers(0, 12), st.integers(0, 3), st.integers(0, 9)),
        max_size=30,
    ),
    days=st.integers(1, 8),
    partitions=st.integers(1, 6),
    rows=st.integers(1, 9),
)
def test_arrivals_are_those_of_files_counted_one_by_one(
    files: list[tuple[int, int, int, int]], days: int, partitions: int, rows: int
) -> None:
    # Files of one folder have paths next to each other, as in every inventory.
    listed = sorted(
        (f"ds=2026-11-{folder:02d}/{at}", f"2026-11-{folder + late:02d}T0{hour}:00:00", size)
        for at, (folder, late, hour, size) in enumerate(files)
    )
    counts: dict[tuple[str, int], list[int]] = {}
    for path, moment, size in listed:
        folder, day = path.partition("/")[0], int(moment[8:10])
        counted = counts.setdefault((folder, day), [0, 0, 0])
        counted[0] += 1
        counted[1] += size
        counted[2] += day > int(folder[-2:]) + 1
    end = max((day for _, day in counts), default=0)
    recent = [
        (folder, day, figures[0], figures[1], figures[2])
        for (folder, day), figures in counts.items()
        if day > end - days
    ]

    arrivals = find_arrivals(inventory(*listed), limits(days, partitions, rows))

    latest = sorted(recent, key=lambda one: (-one[1], one[0]))
    assert arrived(arrivals.latest) == latest[:rows]
    assert arrived(arrivals.late) == [one for one in latest if one[4]][:rows]
    assert arrivals.count == len(recent)
    assert sum(arrivals.late_files) == sum(one[4] for one in recent)
    assert sum(arrivals.late_partitions) == sum(one[4] > 0 for one in recent)
    # The last day of each folder; the last names of the last days are wanted.
    last = {folder: day for folder, day, *_ in sorted(recent)}
    chosen = sorted(last, key=lambda name: (last[name], name))[-partitions:]
    assert [folder for folder, _ in arrivals.newest] == sorted(chosen)
    for folder, of_folder in arrivals.newest:
        assert arrived(of_folder) == sorted(one for one in recent if one[0] == folder)


@pytest.mark.parametrize(
    ("folder", "day"),
    [
        ("ds=2026-11-02", date(2026, 11, 2)),
        ("ds=20261102/hour=3", date(2026, 11, 2)),
        ("at=2026-11-02%2003%3A00", date(2026, 11, 2)),
        ("a=1/year=2026/month=2/day=3", date(2026, 2, 3)),
        ("ds=2026-13-02", None),
        ("id=1234567890", None),
        ("region=se", None),
        ("", None),
    ],
)
def test_folders_name_days_in_the_usual_ways(folder: str, day: date | None) -> None:
    (number,) = days_of(pa.array([folder]))

    epoch = np.iinfo(np.int64).max - 1 if day is None else (day - date(1970, 1, 1)) // DAY
    assert number == epoch
