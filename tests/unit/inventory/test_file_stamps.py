"""A file replaced by one of equal path, size and time is noticed, if the file system shows it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.laws import examples
from tests.unit.inventory.files import as_previous, stats_of, take_inline, touch, write
from windrow_service.inventory.listing.relisting import FileStamps, join_state, split_state
from windrow_service.inventory.look import Inventory

OLD_NS = 1_700_000_000_000_000_000


@pytest.fixture
def table(tmp_path: Path) -> Path:
    for name in ("a", "b"):
        touch(write(tmp_path, f"table/ds=1/{name}", {"x": [1, 2, 3]}), OLD_NS)
    return tmp_path / "table"


def again(location: Path, before: Inventory) -> Inventory:
    # Wait until the file system's clock has ticked.
    time.sleep(0.02)
    return take_inline(str(location), previous=as_previous(before))


def by_renaming(file: Path, new: Path) -> None:
    os.replace(new, file)


def in_place(file: Path, new: Path) -> None:
    file.write_bytes(new.read_bytes())
    touch(file, OLD_NS)


@pytest.mark.parametrize("exchange", [by_renaming, in_place])
def test_a_file_of_equal_size_and_time_is_read_again(
    table: Path, tmp_path: Path, exchange: Callable[[Path, Path], None]
) -> None:
    before = take_inline(str(table), bloom=["x"])
    file = table / "ds=1/a"
    new = write(tmp_path, "new", {"x": [7, 8, 9]})
    touch(new, OLD_NS)
    assert new.stat().st_size == file.stat().st_size
    exchange(file, new)
    time.sleep(0.02)

    after = take_inline(str(table), previous=as_previous(before), bloom=["x"])

    assert [stats["min"] for stats in stats_of(after, "x")] == [7, 1]
    assert (after.added_count, after.removed_count, after.footers_read) == (1, 1, 1)
    blooms = [row["x"] for row in after.files["bloom"].to_pylist()]
    known = before.files["bloom"].to_pylist()[0]["x"]
    assert (blooms[0] == known, blooms[1] == known) == (False, True)
    assert again(table, after).footers_read == 0


def test_a_new_link_to_a_file_is_not_a_change_but_its_footer_is_read_again(
    table: Path, tmp_path: Path
) -> None:
    before = take_inline(str(table))
    os.link(table / "ds=1/a", tmp_path / "kept")

    after = again(table, before)

    assert after.files.equals(before.files)
    assert (after.added_count, after.removed_count, after.footers_read) == (0, 0, 1)


def test_the_state_of_an_earlier_inventory_still_describes_its_files(
    table: Path, tmp_path: Path
) -> None:
    before = take_inline(str(table))
    write(table, "ds=2/c", {"x": [1]})
    # A publish lists nothing: the state of the folders is that of the inventory before it.
    published = replace(take_inline(str(table)), folders=before.folders)
    new = write(tmp_path, "new", {"x": [7, 8, 9]})
    touch(new, OLD_NS)
    os.replace(new, table / "ds=1/a")

    after = again(table, published)

    assert (after.added_count, after.footers_read) == (1, 1)


def test_a_file_that_had_just_changed_is_read_once_more(table: Path) -> None:
    # A second change within the same tick of the clock would leave no trace.
    first = take_inline(str(table), clock_ns=time.time_ns)
    second = again(table, first)
    third = again(table, second)

    assert [one.footers_read for one in (first, second, third)] == [2, 2, 0]
    assert (second.added_count, third.added_count) == (0, 0)


def test_a_published_file_that_changed_afterwards_is_read(table: Path, tmp_path: Path) -> None:
    published = replace(take_inline(str(table)), folders=None)
    published_at_ns = time.time_ns()
    time.sleep(0.02)
    new = write(tmp_path, "new", {"x": [7, 8, 9]})
    touch(new, OLD_NS)
    os.replace(new, table / "ds=1/a")

    previous = replace(as_previous(published), made_at_ns=published_at_ns)
    after = take_inline(str(table), previous=previous)

    assert [stats["min"] for stats in stats_of(after, "x")] == [7, 1]
    assert (after.added_count, after.footers_read) == (1, 1)


def test_without_known_files_no_file_counts_as_replaced(table: Path) -> None:
    before = take_inline(str(table))

    after = again(table, replace(before, folders=None))

    assert (after.added_count, after.footers_read) == (0, 0)


def test_a_damaged_state_is_ignored(table: Path) -> None:
    state = take_inline(str(table)).folders
    assert state is not None
    assert len(split_state(state)[1].keys) == 2

    for at in range(0, len(state), 11):
        damaged = bytearray(state)
        damaged[at] ^= 0xFF
        assert len(split_state(bytes(damaged))[1].keys) == 0
    assert split_state(b"")[0] == split_state(None)[0] == b""


@examples(50)
@given(
    known=st.dictionaries(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1), max_size=20),
    asked=st.lists(st.integers(0, 2**64 - 1), max_size=20),
    folders=st.binary(max_size=40),
)
def test_stamps_survive_a_round_trip_through_the_state(
    known: dict[int, int], asked: list[int], folders: bytes
) -> None:
    keys = np.array(sorted(known), np.uint64)
    stamps = np.array([known[key] for key in sorted(known)], np.uint64)

    found_folders, found = split_state(join_state(folders, FileStamps(keys, stamps)))

    wanted = [*asked, *known]
    assert found_folders == folders
    told = found.of(np.array(wanted, np.uint64))
    assert told.equals(pa.array([known.get(key) for key in wanted], pa.uint64()))
