"""The inventory that a refresh takes of an Iceberg table, and how it finds the metadata."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from tests.support.tables.iceberg import Here, new_table, published_table
from windrow_service.iceberg import inventory
from windrow_service.iceberg.errors import IcebergMetadataError, IcebergNotInstalledError
from windrow_service.iceberg.inventory import take_iceberg
from windrow_service.iceberg.metadata_file import metadata_path
from windrow_service.iceberg.paths import TableFolders
from windrow_service.inventory.errors import InventoryCancelledError
from windrow_service.inventory.look import Inventory, PreviousInventory

ROWS = pa.table({"id": [1, 2, 3]})


def _as_previous(taken: Inventory) -> PreviousInventory:
    return PreviousInventory(
        files=taken.files,
        data_schema=taken.data_schema,
        partition_schema=taken.partition_schema,
        folders=taken.folders,
        table_version=taken.table_version,
    )


def test_added_and_removed_files_are_counted_and_the_log_has_figures(tmp_path: Path) -> None:
    table, location = new_table(tmp_path, ROWS.schema)
    table.append(ROWS)
    first = take_iceberg(location, options={}, executor=Here())
    table.overwrite(ROWS)
    table.append(ROWS)

    second = take_iceberg(location, options={}, previous=_as_previous(first), executor=Here())

    assert (first.added_count, first.removed_count) == (1, 0)
    assert (second.added_count, second.removed_count) == (2, 1)
    assert second.log is not None
    assert (second.log.versions, second.log.small_files, second.log.deleted_rows) == (
        len(table.snapshots()),
        2,
        0,
    )


@pytest.mark.parametrize(
    ("change", "is_usable"),
    [
        ({}, True),
        ({"table_version": "7"}, False),
        ({"folders": b"?"}, False),
        ({"full": True}, False),
    ],
)
def test_nothing_is_carried_over_from_an_unusable_previous_inventory(
    change: dict[str, object], is_usable: bool, tmp_path: Path
) -> None:
    table, location = new_table(tmp_path, ROWS.schema)
    table.append(ROWS)
    first = take_iceberg(location, options={}, executor=Here())
    # No manifest states this size, so it shows which files were carried over.
    at = first.files.schema.get_field_index("size_bytes")
    marked = first.files.set_column(at, first.files.schema.field(at), pa.array([12_345]))

    previous = replace(_as_previous(first), files=marked, **change)
    again = take_iceberg(location, options={}, previous=previous, executor=Here())

    assert again.files.equals(marked if is_usable else first.files)


def test_a_cancelled_refresh_stops(tmp_path: Path) -> None:
    table, location = new_table(tmp_path, ROWS.schema)
    table.append(ROWS)
    cancelled = threading.Event()
    cancelled.set()

    with pytest.raises(InventoryCancelledError):
        take_iceberg(location, options={}, cancelled=cancelled, executor=Here())


def test_a_coordinator_without_pyiceberg_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(inventory, "find_spec", lambda _: None)

    with pytest.raises(IcebergNotInstalledError, match="pip install"):
        take_iceberg("/data/t", options={})


def test_metadata_of_a_hadoop_table_is_the_newest_that_follows_its_hint(tmp_path: Path) -> None:
    table = published_table("iceberg_v2_positional_not_all_data_files_have_delete_files", tmp_path)
    folders, hint = TableFolders(str(table), ()), table / "metadata" / "version-hint.text"

    def found() -> str:
        return Path(metadata_path(folders, {})).name

    hint.write_text("5\n")
    assert found() == "v7.metadata.json"
    (table / "metadata" / "v6.metadata.json").unlink()
    assert found() == "v5.metadata.json"
    hint.write_text("not a number")
    assert found() == "v7.metadata.json"
    hint.unlink()
    assert found() == "v7.metadata.json"


def test_metadata_without_a_number_is_what_the_hint_names(tmp_path: Path) -> None:
    folder = tmp_path / "metadata"
    folder.mkdir()
    for name in ("3ed2", "9a1b"):
        (folder / f"{name}.metadata.json").write_text("{}")
    folders = TableFolders(str(tmp_path), ())
    with pytest.raises(IcebergMetadataError, match="no metadata file"):
        metadata_path(folders, {})
    (folder / "version-hint.text").write_text("3ed2")

    assert Path(metadata_path(folders, {})).name == "3ed2.metadata.json"


def test_two_newest_metadata_files_are_refused_without_a_catalog(tmp_path: Path) -> None:
    table, location = new_table(tmp_path, ROWS.schema)
    table.append(ROWS)
    newest = max(Path(location, "metadata").glob("*.metadata.json"))
    (newest.parent / "00001-other.metadata.json").write_bytes(newest.read_bytes())

    with pytest.raises(IcebergMetadataError, match="only a catalog knows"):
        metadata_path(TableFolders(location, ()), {})
