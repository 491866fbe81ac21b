"""The number of events on each day, in the write demo and in the benchmark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.dataset as pads
import pytest

from windrow_demo.events import Ints, day_names, growing, write_events, zipf


@pytest.mark.parametrize("share", [growing, zipf])
@pytest.mark.parametrize("days", [1, 2, 30, 365])
def test_all_rows_are_distributed_and_each_day_gets_at_least_one(
    share: Callable[[int, int], Ints], days: int
) -> None:
    rows = share(days, 100_003)

    assert len(rows) == days
    assert rows.sum() == 100_003
    assert rows.min() >= 1


def test_days_grow_evenly() -> None:
    rows = growing(100, 1_000_000)

    assert (np.diff(rows) > 0).all()
    assert rows[-1] / rows[49] == pytest.approx(2, rel=0.01)


def test_the_nth_largest_day_holds_an_nth_of_the_largest() -> None:
    rows = np.sort(zipf(100, 10_000_000))[::-1]

    assert rows[0] / rows[9] == pytest.approx(10, rel=0.01)
    assert rows[0] / rows[99] == pytest.approx(100, rel=0.01)
    assert not (np.diff(zipf(100, 10_000_000)) < 0).all()


def test_every_file_of_events_holds_rows_of_many_days(tmp_path: Path) -> None:
    rows: Ints = growing(10, 5_000)
    written: list[int] = []

    write_events(tmp_path / "events", rows, written.append, files=3)

    files = sorted((tmp_path / "events").glob("*.parquet"))
    assert len(files) == len(written) == 3
    for file in files:
        assert len(pads.dataset(file).to_table(["ds"])["ds"].unique()) == 10
    found = pads.dataset(tmp_path / "events", format="parquet").to_table()
    assert sorted(found["id"].to_pylist()) == list(range(5_000))
    counted = {row["values"]: row["counts"] for row in found["ds"].value_counts().to_pylist()}
    assert counted == dict(zip(day_names(10).to_pylist(), rows.tolist(), strict=True))
