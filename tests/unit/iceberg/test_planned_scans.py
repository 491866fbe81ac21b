"""What plans of scans find in the metadata of tables that PyIceberg writes."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.support.tables.iceberg import Here, new_table
from tests.support.tables.iceberg_files import read_avro, write_avro
from windrow_service.iceberg import reader
from windrow_service.iceberg.errors import IcebergMetadataError
from windrow_service.iceberg.paths import TableFolders
from windrow_service.iceberg.scans import planned_files, planned_snapshot

_FIRST_ROW = {"name": "first_row_id", "field-id": 520, "type": ["null", "long"], "default": None}


def test_a_manifest_that_a_list_has_among_data_and_among_deletes_is_two(tmp_path: Path) -> None:
    table, location = new_table(tmp_path, pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": [1, 2]}))
    snapshot = table.current_snapshot()
    assert snapshot is not None
    path = Path(snapshot.manifest_list.removeprefix("file://"))
    schema, head, records = read_avro(path)
    write_avro(path, schema, head, [*records, *({**one, "content": 1} for one in records)])

    data, deletes = planned_snapshot(
        TableFolders(location, ()), {"metadata": table.metadata_location}, None, Here()
    ).manifests

    assert (data.holds_deletes, deletes.holds_deletes) == (False, True)
    assert data.key != deletes.key


@pytest.mark.parametrize("change", [{"first_row_id": 100}, {"sequence_number": 7}])
def test_a_manifest_that_a_list_states_in_another_way_is_another_one(
    tmp_path: Path, change: dict[str, Any]
) -> None:
    table, location = new_table(tmp_path, pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": [1, 2]}))
    snapshot, folders = table.current_snapshot(), TableFolders(location, ())
    assert snapshot is not None
    options = {"metadata": table.metadata_location}
    before = planned_snapshot(folders, options, None, Here()).manifests
    path = Path(snapshot.manifest_list.removeprefix("file://"))
    schema, head, records = read_avro(path)
    schema["fields"].append(_FIRST_ROW)
    write_avro(path, schema, head, [{**record, **change} for record in records])

    after = planned_snapshot(folders, options, None, Here()).manifests

    (files,) = planned_files(folders, after, Here())
    assert {name: files[name].to_pylist() for name in change} == {
        name: [value] for name, value in change.items()
    }
    assert after[0].key != before[0].key
    assert after[0].key == planned_snapshot(folders, options, None, Here()).manifests[0].key


def test_first_rows_are_numbered_in_each_of_the_manifests_that_are_read_together(
    tmp_path: Path,
) -> None:
    table, location = new_table(tmp_path, pa.schema([("id", pa.int64())]))
    firsts = [None, 100, 7]
    for _ in firsts:
        table.append(pa.table({"id": [1, 2]}))
    snapshot, folders = table.current_snapshot(), TableFolders(location, ())
    assert snapshot is not None
    for manifest in snapshot.manifests(table.io):
        path = Path(manifest.manifest_path.removeprefix("file://"))
        schema, head, (one,) = read_avro(path)
        write_avro(path, schema, head, [one, one])
    path = Path(snapshot.manifest_list.removeprefix("file://"))
    schema, head, records = read_avro(path)
    schema["fields"].append(_FIRST_ROW)
    stated = [{**one, "first_row_id": id_} for one, id_ in zip(records, firsts, strict=True)]
    write_avro(path, schema, head, stated)

    options = {"metadata": table.metadata_location}
    manifests = planned_snapshot(folders, options, None, Here()).manifests

    assert [
        files["first_row_id"].to_pylist() for files in planned_files(folders, manifests, Here())
    ] == [
        [None, None],
        [100, 102],
        [7, 9],
    ]


def test_manifests_that_lack_optional_fields_are_read_together_as_by_themselves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, location = new_table(tmp_path, pa.schema([("id", pa.int64())]))
    for _ in range(3):
        table.append(pa.table({"id": [1, 2]}))
    options, folders = {"metadata": table.metadata_location}, TableFolders(location, ())
    manifests = planned_snapshot(folders, options, None, Here()).manifests
    path = Path(manifests[0].task.path.removeprefix("file://"))
    schema, head, records = read_avro(path)
    (file,) = (one["type"] for one in schema["fields"] if one["name"] == "data_file")
    left_out = {"lower_bounds", "split_offsets"}
    file["fields"] = [one for one in file["fields"] if one["name"] not in left_out]
    write_avro(path, schema, head, records)

    together = planned_files(folders, manifests, Here())

    assert [files["row_group_offsets"].to_pylist() for files in together] == [[[]], [[4]], [[4]]]
    monkeypatch.setattr(reader, "_MAX_TOGETHER", 1)
    by_themselves = planned_files(folders, manifests, Here())
    assert [one.to_pylist() for one in together] == [one.to_pylist() for one in by_themselves]


def test_a_damaged_manifest_is_named_among_those_that_are_read_together(tmp_path: Path) -> None:
    table, location = new_table(tmp_path, pa.schema([("id", pa.int64())]))
    for _ in range(5):
        table.append(pa.table({"id": [1, 2]}))
    options, folders = {"metadata": table.metadata_location}, TableFolders(location, ())
    manifests = planned_snapshot(folders, options, None, Here()).manifests
    damaged = Path(manifests[2].task.path.removeprefix("file://"))
    damaged.write_bytes(damaged.read_bytes()[:-20])

    with pytest.raises(IcebergMetadataError, match=damaged.name):
        planned_files(folders, manifests, Here())


def test_a_manifest_keeps_no_memory_of_those_that_were_read_with_it(tmp_path: Path) -> None:
    table, location = new_table(tmp_path, pa.schema([("id", pa.int64())]))
    for _ in range(5):
        table.append(pa.table({"id": [1, 2]}))
    options, folders = {"metadata": table.metadata_location}, TableFolders(location, ())
    manifests = planned_snapshot(folders, options, None, Here()).manifests
    for manifest in manifests:
        path = Path(manifest.task.path.removeprefix("file://"))
        schema, head, (one,) = read_avro(path)
        write_avro(path, schema, head, [one] * 200)

    for files in planned_files(folders, manifests, Here()):
        assert files.get_total_buffer_size() < 2 * files.nbytes + 1_000


def test_few_calls_parse_many_small_manifests(tmp_path: Path) -> None:
    table, location = new_table(tmp_path, pa.schema([("id", pa.int64())]))
    for _ in range(20):
        table.append(pa.table({"id": [1, 2]}))
    options, folders = {"metadata": table.metadata_location}, TableFolders(location, ())
    manifests = planned_snapshot(folders, options, None, Here()).manifests
    calls = []

    class Counted(Here):
        def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
            calls.append(fn)
            return super().submit(fn, *args, **kwargs)

    assert sum(map(len, planned_files(folders, manifests, Counted()))) == 20
    assert len(calls) == 2
