"""Files of 0 bytes are skipped, as in Spark, and counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.inventory.files import as_previous, take_inline, write
from windrow_core.files.errors import UnreadableFootersError
from windrow_core.models import RefreshProgress
from windrow_service.inventory.errors import PartitionLayoutError

LATER_NS = 3 * 10**18


def empty(location: Path, *paths: str) -> None:
    for path in paths:
        (location / path).parent.mkdir(parents=True, exist_ok=True)
        (location / path).touch()


def test_empty_files_are_counted_but_are_not_files_of_the_table(tmp_path: Path) -> None:
    write(tmp_path, "ds=1/a")
    empty(tmp_path, "ds=1/b", "ds=2/c", "d")
    seen: list[RefreshProgress] = []

    inventory = take_inline(str(tmp_path), on_progress=seen.append)

    assert inventory.files["path"].to_pylist() == ["ds=1/a"]
    assert (inventory.added_count, inventory.footers_read) == (1, 1)
    assert (seen[-1].files_found, seen[-1].files_empty) == (1, 3)


def test_folders_of_empty_files_count_for_the_types_of_partition_columns(tmp_path: Path) -> None:
    write(tmp_path, "ds=1/a")
    empty(tmp_path, "ds=x/b")

    inventory = take_inline(str(tmp_path))

    assert str(inventory.partition_schema.field("ds").type) == "string"
    assert inventory.files["partition"].to_pylist() == [{"ds": "1"}]


def test_folders_of_empty_files_must_match_the_partition_columns(tmp_path: Path) -> None:
    write(tmp_path, "ds=1/a")
    empty(tmp_path, "other=1/b")

    with pytest.raises(PartitionLayoutError, match="other=1/b"):
        take_inline(str(tmp_path))


def test_empty_files_in_unchanged_folders_are_counted_and_noticed_once_filled(
    tmp_path: Path,
) -> None:
    write(tmp_path, "ds=1/a")
    write(tmp_path, "ds=2/a")
    empty(tmp_path, "ds=1/b")
    first = take_inline(str(tmp_path), clock_ns=lambda: LATER_NS, trusts_folders=True)
    seen: list[RefreshProgress] = []

    again = take_inline(
        str(tmp_path),
        previous=as_previous(first),
        on_progress=seen.append,
        clock_ns=lambda: LATER_NS,
        trusts_folders=True,
    )
    write(tmp_path, "ds=1/b")
    filled = take_inline(
        str(tmp_path),
        previous=as_previous(again),
        clock_ns=lambda: LATER_NS,
        trusts_folders=True,
    )

    assert (seen[-1].files_found, seen[-1].files_empty, again.folder_count) == (2, 1, 1)
    assert filled.files["path"].to_pylist() == ["ds=1/a", "ds=1/b", "ds=2/a"]


def test_a_file_that_becomes_empty_is_removed(tmp_path: Path) -> None:
    write(tmp_path, "a")
    write(tmp_path, "b")
    first = take_inline(str(tmp_path))
    (tmp_path / "b").write_bytes(b"")

    second = take_inline(str(tmp_path), previous=as_previous(first))

    assert second.files["path"].to_pylist() == ["a"]
    assert (second.added_count, second.removed_count) == (0, 1)


def test_a_file_that_is_cut_short_is_still_refused_by_name(tmp_path: Path) -> None:
    write(tmp_path, "a")
    (tmp_path / "b").write_bytes((tmp_path / "a").read_bytes()[:-9])

    with pytest.raises(UnreadableFootersError, match="'b'"):
        take_inline(str(tmp_path))
