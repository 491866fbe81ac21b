"""Iceberg tables over HTTP: registered, refreshed by their metadata, planned at their versions."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform

import windrow
from tests.support.tables.iceberg import catalog_in, new_table
from windrow_calls.errors import InvalidArgumentError, ProblemError, RefreshFailedError
from windrow_core.models import WritePlanRequest

ROWS = pa.table({"id": [1, 2, 3], "region": ["north", "north", "south"]})


@pytest.fixture
def table(location: Path) -> Table:
    """An Iceberg table of two snapshots, with a tag at the first."""
    location.parent.mkdir(exist_ok=True)
    made, _ = new_table(location, ROWS.schema)
    with made.update_spec() as spec:
        spec.add_field("region", IdentityTransform())
    made.append(ROWS)
    first = made.current_snapshot()
    assert first is not None
    with made.manage_snapshots() as refs:
        refs.create_tag(first.snapshot_id, "nightly")
    made.delete("id = 1")
    return made


def _register(
    client: windrow.Client, name: str, table: Table, *, replace: bool = False, **options: str
) -> None:
    location = table.location().removeprefix("file://")
    client.register_table(name, location, "iceberg", format_options=options, replace=replace)


def _planned(client: windrow.Client, name: str, version: str | None = None) -> set[str]:
    splits = client.plan(name, version=version).groups["splits"]
    return {split["path"] for one in splits.to_pylist() for split in one}


def _planned_by_pyiceberg(table: Table, snapshot_id: int | None = None) -> set[str]:
    tasks = table.scan(snapshot_id=snapshot_id).plan_files()
    return {task.file.file_path.removeprefix(f"{table.location()}/") for task in tasks}


@pytest.mark.slow
def test_a_refresh_follows_the_metadata_and_reports_its_figures(
    client: windrow.Client, name: str, table: Table
) -> None:
    _register(client, name, table)
    client.refresh(name)
    table.append(ROWS)

    status = client.refresh(name)
    again = client.refresh(name)

    snapshot = client.table(name).current_snapshot
    assert snapshot is not None
    assert snapshot.log is not None
    current = table.current_snapshot()
    assert current is not None
    assert (status.files_added, again.changed) == (2, False)
    assert snapshot.table_version == str(current.snapshot_id)
    assert [column.name for column in snapshot.partition_columns] == ["region"]
    assert (snapshot.log.versions, snapshot.log.delete_files, snapshot.log.small_files) == (
        len(table.snapshots()),
        0,
        4,
    )
    assert _planned(client, name) == _planned_by_pyiceberg(table)


def test_versions_are_planned_by_id_and_by_name_once_they_were_refreshed(
    client: windrow.Client, name: str, table: Table
) -> None:
    _register(client, name, table)
    client.refresh(name)
    first = table.snapshots()[0].snapshot_id

    with pytest.raises(ProblemError, match="--version nightly"):
        _planned(client, name, "nightly")
    for version in ("nightly", str(first)):
        client.refresh(name, version=version)
        assert client.refresh(name, version=version).changed is False
        assert _planned(client, name, version) == _planned_by_pyiceberg(table, first)

    assert _planned(client, name) == _planned_by_pyiceberg(table)


def test_a_table_whose_metadata_is_in_another_folder_is_read(
    client: windrow.Client, name: str, location: Path
) -> None:
    properties = {"write.metadata.path": f"file://{location}_metadata"}
    catalog = catalog_in(location.parent / f"{name}_catalog")
    table = catalog.create_table("ns.t", ROWS.schema, f"file://{location}", properties=properties)
    table.append(ROWS)
    _register(client, name, table, metadata=table.metadata_location)

    client.refresh(name)

    assert not (location / "metadata").exists()
    assert _planned(client, name) == _planned_by_pyiceberg(table)


def test_a_missing_version_is_refused_by_name(
    client: windrow.Client, name: str, table: Table
) -> None:
    _register(client, name, table)

    with pytest.raises(RefreshFailedError, match=r"'nowhere': it has main, nightly"):
        client.refresh(name, version="nowhere")


def test_a_table_is_found_through_a_catalog_that_the_coordinator_knows(
    client: windrow.Client,
    name: str,
    table: Table,
    location: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__TESTS__URI", f"sqlite:///{location}/catalog.db")
    _register(client, name, table, catalog="tests", identifier="ns.t", ref="nightly")
    client.refresh(name)

    assert _planned(client, name) == _planned_by_pyiceberg(table, table.snapshots()[0].snapshot_id)
    assert catalog_in(location).table_exists("ns.t")


def test_an_unusable_catalog_is_refused_without_revealing_secrets(
    client: windrow.Client, name: str, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__BROKEN__URI", "postgresql://user:secret@localhost:1/x")
    _register(client, name, table, catalog="broken", identifier="ns.t")

    with pytest.raises(RefreshFailedError, match="configuration of the catalog") as caught:
        client.refresh(name)

    assert "secret" not in str(caught.value)


def test_options_that_do_not_fit_are_refused(client: windrow.Client, name: str) -> None:
    with pytest.raises(InvalidArgumentError, match="go together"):
        client.register_table(name, "/data/t", "iceberg", format_options={"catalog": "lake"})


def test_a_compaction_is_refused_with_the_name_of_icebergs_own_tool(
    client: windrow.Client, name: str, table: Table
) -> None:
    _register(client, name, table)
    client.refresh(name)

    with pytest.raises(ProblemError, match="rewrite_data_files"):
        next(client.plan_compaction(name))


def test_advice_and_write_plans_use_the_partitions_of_the_table(
    client: windrow.Client, name: str, table: Table
) -> None:
    _register(client, name, table)
    client.refresh(name)

    advice = client.advise(name)
    plan = client.write_plan(WritePlanRequest(table=name, keys_from="files"))

    assert (advice.files, advice.small_files) == (2, 2)
    assert [column.name for column in plan.partition_columns] == ["region"]


def test_registering_a_newer_metadata_file_keeps_the_snapshots(
    client: windrow.Client, name: str, table: Table
) -> None:
    _register(client, name, table, metadata=table.metadata_location)
    before = client.refresh(name).snapshot
    table.append(ROWS)

    _register(client, name, table, metadata=table.metadata_location)

    assert client.table(name).current_snapshot == before
    assert client.refresh(name).files_added == 2
    assert _planned(client, name) == _planned_by_pyiceberg(table)
    # With a tag, it counts as another table.
    _register(client, name, table, metadata=table.metadata_location, ref="nightly", replace=True)
    assert client.table(name).current_snapshot is None
