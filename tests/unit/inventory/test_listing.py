"""A listing finds the files that Spark would read, or says why it cannot."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from tests.support.files.listings import list_files
from tests.unit.inventory.files import touch
from windrow_core.files.errors import LocationError
from windrow_core.files.listing import FolderEntries, is_hidden, scan_local_folder
from windrow_core.files.rows import LISTING_SCHEMA
from windrow_core.models import RefreshProgress
from windrow_service.inventory.errors import InventoryCancelledError


def make(location: Path, *paths: str) -> None:
    for path in paths:
        (location / path).parent.mkdir(parents=True, exist_ok=True)
        (location / path).write_bytes(b"x" * len(path))


def test_files_are_listed_with_size_and_time_in_byte_order_of_paths(tmp_path: Path) -> None:
    make(tmp_path, "b/2", "a/z", "a/Z", "a/é", "top")
    touch(tmp_path / "b/2", 1_700_000_000_123_456_789)

    listing = list_files(str(tmp_path))

    assert listing.files.schema == LISTING_SCHEMA
    assert listing.files["path"].to_pylist() == ["a/Z", "a/z", "a/é", "b/2", "top"]
    assert listing.files["size_bytes"].to_pylist() == [3, 3, 3, 3, 3]
    assert listing.files["mtime_ns"][3].as_py() == 1_700_000_000_123_456_789
    assert listing.folder_count == 3


@pytest.mark.parametrize(
    ("name", "hidden"),
    [
        ("part-0.parquet", False),
        ("_col=1", False),
        ("a._b", False),
        ("_SUCCESS", True),
        ("_temporary", True),
        (".part-0.parquet.crc", True),
        (".hidden=1", True),
        ("part-0.parquet._COPYING_", True),
    ],
)
def test_the_names_that_spark_hides_are_hidden(name: str, hidden: bool) -> None:
    assert is_hidden(name) is hidden


def test_files_in_hidden_folders_are_skipped(tmp_path: Path) -> None:
    make(tmp_path, "_temporary/0/f", ".git/f", "_col=1/f", "f", "_SUCCESS", "g._COPYING_")

    paths = list_files(str(tmp_path)).files["path"].to_pylist()

    assert paths == ["_col=1/f", "f"]


def test_an_empty_folder_holds_no_files(tmp_path: Path) -> None:
    assert list_files(str(tmp_path)).files.equals(LISTING_SCHEMA.empty_table())


def test_more_folders_than_fit_a_batch_are_all_listed(tmp_path: Path) -> None:
    make(tmp_path, *(f"k={number}/f" for number in range(300)))

    listing = list_files(str(tmp_path))

    assert (listing.files.num_rows, listing.folder_count) == (300, 301)


def test_progress_ends_with_everything_counted(tmp_path: Path) -> None:
    make(tmp_path, "a/1", "a/2", "b/3")
    seen: list[RefreshProgress] = []

    list_files(str(tmp_path), seen.append)

    assert seen[0] == RefreshProgress(phase="listing")
    assert seen[-1] == RefreshProgress(phase="listing", folders_listed=3, files_found=3)


def test_a_missing_location_is_named(tmp_path: Path) -> None:
    with pytest.raises(LocationError, match="nowhere' does not exist") as caught:
        list_files(str(tmp_path / "nowhere"))

    assert caught.value.folder == str(tmp_path / "nowhere")


def test_a_file_is_not_a_location(tmp_path: Path) -> None:
    make(tmp_path, "f")

    with pytest.raises(LocationError, match="is not a folder"):
        list_files(str(tmp_path / "f"))


def test_a_folder_that_vanishes_during_the_listing_counts_as_gone(tmp_path: Path) -> None:
    make(tmp_path, "a/1", "b/2")

    def scan(location: str, folder: str, entries: FolderEntries) -> None:
        if folder == "a":
            (tmp_path / "a/1").unlink()
            (tmp_path / "a").rmdir()
        scan_local_folder(location, folder, entries)

    paths = list_files(str(tmp_path), scan=scan).files["path"].to_pylist()

    assert paths == ["b/2"]


def test_a_link_to_a_file_of_the_table_is_followed(tmp_path: Path) -> None:
    make(tmp_path, "a/1")
    (tmp_path / "b").symlink_to(tmp_path / "a/1")

    assert list_files(str(tmp_path)).files["path"].to_pylist() == ["a/1", "b"]


def test_a_link_that_leads_out_of_the_location_is_refused(tmp_path: Path) -> None:
    make(tmp_path, "outside", "table/1")
    (tmp_path / "table/2").symlink_to(tmp_path / "outside")

    with pytest.raises(LocationError, match=r"table/2' is a symbolic link that leads out"):
        list_files(str(tmp_path / "table"))


def test_a_link_to_a_folder_is_refused(tmp_path: Path) -> None:
    make(tmp_path, "a/1")
    (tmp_path / "a/loop").symlink_to(tmp_path)

    with pytest.raises(LocationError, match="loop' is a symbolic link to a folder"):
        list_files(str(tmp_path))


def test_a_link_to_nothing_counts_as_gone(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "nowhere")

    assert list_files(str(tmp_path)).files.num_rows == 0


def test_an_entry_that_is_not_a_file_is_named(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(LocationError, match="pipe' is neither a file nor a folder"):
        list_files(str(tmp_path))


def test_a_name_that_is_not_utf8_is_shown(tmp_path: Path) -> None:
    with open(os.fsencode(str(tmp_path)) + b"/\xff.parquet", "wb"):
        pass

    with pytest.raises(LocationError, match=r"xff.parquet' has a name that is not UTF-8"):
        list_files(str(tmp_path))


def test_a_listing_can_be_cancelled(tmp_path: Path) -> None:
    cancelled = threading.Event()
    cancelled.set()

    with pytest.raises(InventoryCancelledError):
        list_files(str(tmp_path), cancelled=cancelled)
