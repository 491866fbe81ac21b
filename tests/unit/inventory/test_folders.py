"""A refresh that trusts the times of folders lists those again that have changed."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from tests.unit.inventory.files import as_previous, take_inline, touch, write
from windrow_core.files.mounts import keeps_times
from windrow_service.inventory.listing.folders import (
    Stamp,
    decode_folders,
    encode_folders,
)
from windrow_service.inventory.look import Inventory

take_later = partial(take_inline, trusts_folders=True)
take_at_once = partial(take_later, clock_ns=time.time_ns)


def again(location: Path, before: Inventory) -> Inventory:
    # Wait until the file system's clock has ticked; it knows nothing of the hour added above.
    time.sleep(0.02)
    return take_later(str(location), previous=as_previous(before))


@pytest.fixture
def table(tmp_path: Path) -> Path:
    for path in ("a/x=1/f", "a/x=2/f", "a/x=2/g"):
        write(tmp_path, path, {"n": [1]})
    return tmp_path / "a"


def test_nothing_is_listed_if_nothing_changed(table: Path) -> None:
    before = take_later(str(table))

    after = again(table, before)

    assert (before.folder_count, after.folder_count, after.footers_read) == (3, 0, 0)
    assert after.files.equals(before.files)
    assert after.folders == before.folders


def test_only_folders_whose_entries_changed_are_listed(table: Path) -> None:
    before = take_later(str(table))
    write(table, "x=2/h", {"n": [2]})
    (table / "x=2/f").unlink()

    after = again(table, before)

    assert (after.folder_count, after.footers_read) == (1, 1)
    assert after.files["path"].to_pylist() == ["x=1/f", "x=2/g", "x=2/h"]


def test_a_file_that_is_replaced_by_renaming_is_found(table: Path) -> None:
    before = take_later(str(table))
    os.replace(write(table.parent, "new", {"n": [1, 2]}), table / "x=1/f")

    after = again(table, before)

    assert after.files["row_count"].to_pylist() == [2, 1, 1]


def test_a_file_rewritten_in_place_is_found_by_a_full_listing_and_no_folder_trusted_again(
    table: Path,
) -> None:
    before = take_later(str(table))
    time.sleep(0.02)
    write(table, "x=1/f", {"n": [1, 2]})

    partly = again(table, before)
    fully = take_later(str(table), previous=replace(as_previous(partly), full=True))
    time.sleep(0.02)
    write(table, "x=2/f", {"n": [1, 2]})
    later = again(table, fully)

    assert partly.files.equals(before.files)
    assert fully.files["row_count"].to_pylist() == [2, 1, 1]
    assert later.files["row_count"].to_pylist() == [2, 2, 1]
    assert again(table, later).folder_count == 3


def test_a_new_link_to_a_file_costs_no_trust(table: Path) -> None:
    before = take_later(str(table))
    os.link(table / "x=1/f", table.parent / "kept")

    after = take_later(str(table), previous=replace(as_previous(before), full=True))

    assert after.footers_read == 1
    assert again(table, after).folder_count == 0


def test_without_that_trust_a_file_rewritten_in_place_is_found_by_any_refresh(table: Path) -> None:
    before = take_inline(str(table))
    write(table, "x=1/f", {"n": [1, 2]})

    after = take_inline(str(table), previous=as_previous(before))

    assert (after.files["row_count"].to_pylist(), after.footers_read) == ([2, 1, 1], 1)


def test_a_folder_that_has_only_just_changed_is_listed_again(table: Path) -> None:
    before = take_at_once(str(table))

    after = take_at_once(str(table), previous=as_previous(before))

    assert after.folder_count == 3


def test_a_time_of_change_that_was_set_back_is_noticed(table: Path) -> None:
    before = take_later(str(table))
    status = (table / "x=1").stat()
    write(table, "x=1/new", {"n": [1]})
    touch(table / "x=1", status.st_mtime_ns)

    assert again(table, before).files.num_rows == 4


def test_a_folder_with_a_link_is_always_listed(table: Path) -> None:
    (table / "x=1/link").symlink_to(table / "x=2/f")
    before = take_later(str(table))
    os.replace(write(table.parent, "new", {"n": [1, 2]}), table / "x=2/f")

    after = again(table, before)

    assert after.files.select(["path", "row_count"]).to_pylist()[1] == {
        "path": "x=1/link",
        "row_count": 2,
    }


def test_a_replaced_folder_is_listed(table: Path) -> None:
    before = take_later(str(table))
    (table / "x=1").rename(table.parent / "away")
    (table / "x=2").rename(table / "x=1")

    after = again(table, before)

    assert after.files["path"].to_pylist() == ["x=1/f", "x=1/g"]


def test_saved_state_of_other_files_or_damaged_state_is_not_used(table: Path) -> None:
    state = encode_folders("/t", {"": Stamp(1, 2, 3, 4), "a": None}, 5)

    assert state is not None
    known = decode_folders(state, "/t", 5)
    assert known is not None
    assert (dict(known.stamps), dict(known.children)) == ({"": Stamp(1, 2, 3, 4)}, {"": ["a"]})
    assert decode_folders(state, "/other", 5) is None
    assert decode_folders(state, "/t", 6) is None
    assert decode_folders(state[:-20], "/t", 5) is None
    assert decode_folders(b"", "/t", 5) is None
    for at in range(0, len(state), 7):
        damaged = bytearray(state)
        damaged[at] ^= 0xFF
        assert decode_folders(bytes(damaged), "/t", 5) is None


def test_file_systems_with_unreliable_folder_times_are_not_trusted(tmp_path: Path) -> None:
    assert keeps_times(str(tmp_path))
    assert not keeps_times("/proc/self")
