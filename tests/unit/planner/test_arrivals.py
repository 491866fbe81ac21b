"""When files came into partitions: by day, late ones counted apart."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone

import numpy as np
import pyarrow as pa
import pytest

from windrow_service.planner.upkeep.arrivals import days_of, find_arrivals

DAY = timedelta(days=1)


def inventory(*files: tuple[str, str, int]) -> pa.Table:
    """Return files of a path, the moment when they came, and their size."""
    moments = [datetime.fromisoformat(at).replace(tzinfo=timezone.utc) for _, at, _ in files]
    return pa.table(
        {
            "path": [path for path, _, _ in files],
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


def test_files_count_by_folder_and_day_and_are_late_from_the_second_day_on() -> None:
    arrivals = find_arrivals(FILES, 3)

    assert arrivals.days == [date(2026, 11, 2), date(2026, 11, 3), date(2026, 11, 4)]
    assert arrivals.folders == ["ds=2026-11-02", "ds=2026-11-04"]
    assert arrivals.files.tolist() == [[1, 1, 1], [0, 0, 1]]
    assert arrivals.size_bytes.tolist() == [[10, 20, 30], [0, 0, 40]]
    assert arrivals.late_files.tolist() == [[0, 0, 1], [0, 0, 0]]
    assert arrivals.names_days


def test_files_that_a_rewrite_made_are_not_late() -> None:
    begin = int(datetime(2026, 11, 4, tzinfo=timezone.utc).timestamp()) * 10**9

    assert find_arrivals(FILES, 3, [(begin - 1, begin + 1)]).late_files.sum() == 0
    assert find_arrivals(FILES, 3, [(begin + 1, begin + 2)]).late_files.sum() == 1


def test_nothing_is_late_without_days_or_files() -> None:
    plain = find_arrivals(inventory(("region=se/a", "2026-11-02T10:00:00", 1)), 7)
    empty = find_arrivals(FILES.slice(0, 0), 7)

    assert (plain.late_files.sum(), plain.names_days, plain.files.sum()) == (0, False, 1)
    assert (len(empty.days), empty.folders, empty.files.shape) == (7, [], (0, 7))


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
