"""Whatever values the metadata of a table holds, a refresh answers by name or reads the table."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.transforms import BucketTransform, IdentityTransform
from pyiceberg.types import StringType

from tests.support.files.odd_values import ODD_VALUES, places_in, with_value
from tests.support.laws import examples
from tests.support.tables.iceberg import Here, new_table
from tests.support.tables.iceberg_files import read_avro, write_avro
from windrow_core.files.errors import (
    DuplicateColumnError,
    InventoryError,
    LocationError,
    SchemaConflictError,
    UnreadableTypeError,
)
from windrow_service.delta.inventory import take_version
from windrow_service.delta.reading import LoggedTable
from windrow_service.iceberg.inventory import take_iceberg
from windrow_service.inventory.build import take_inventory
from windrow_service.inventory.errors import TotalsTooLargeError
from windrow_service.inventory.look import Inventory, Look
from windrow_service.inventory.progress import ProgressMeter
from windrow_service.usecases.snapshots.next_snapshot import next_after_inventory

_INNER = pa.struct([("x", pa.list_(pa.int32()))])
_SCHEMA = pa.schema([("id", pa.int64()), ("region", pa.string()), ("s", _INNER)])
# A value of each type of Avro that a manifest could hold instead.
_AVRO: Mapping[str, Any] = {
    "null": None,
    "boolean": True,
    "int": -1,
    "long": 2**63 - 1,
    "double": 1e300,
    "string": "../..",
    "bytes": b"\xff" * 17,
}


# They name the column, or the total.
_ABOUT_COLUMNS = (
    DuplicateColumnError,
    SchemaConflictError,
    TotalsTooLargeError,
    UnreadableTypeError,
)


@dataclass(frozen=True)
class Told:
    """A table: its location, and its newest metadata file."""

    location: Path
    metadata: Path


@pytest.fixture(scope="module", params=["1", "2"])
def told(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Told:
    folder = tmp_path_factory.mktemp("odd")
    table, location = new_table(folder, _SCHEMA, **{"format-version": request.param})
    with table.update_spec() as spec:
        spec.add_field("region", IdentityTransform(), "r")
        spec.add_field("id", BucketTransform(3), "b")
    for at in (1, 2):
        rows = [[at], ["north"], [{"x": [at]}]]
        table.append(pa.table(rows, schema=_SCHEMA))
    with table.update_schema() as schema:
        schema.add_column("n", StringType())
    current = table.current_snapshot()
    assert current is not None
    with table.manage_snapshots() as refs:
        refs.create_tag(current.snapshot_id, "tag")
    table.refresh()
    return Told(Path(location), Path(table.metadata_location.removeprefix("file://")))


def _require_named(take: Callable[[], Inventory], *names: str) -> None:
    """Take an inventory as a refresh does, and allow only errors that it names."""
    refusal = None
    try:
        next_after_inventory(take(), None, [])
    except InventoryError as error:
        refusal = error
    # Callers are answered in UTF-8.
    said = str(refusal).encode().decode()
    if refusal is not None and not isinstance(refusal, _ABOUT_COLUMNS):
        assert any(name in said for name in names)


def _refreshed(told: Told, metadata: Path) -> None:
    options = {"metadata": str(metadata)}
    _require_named(
        lambda: take_iceberg(str(told.location), options=options, executor=Here()),
        str(told.location),
    )


@pytest.mark.filterwarnings("ignore")
@examples(150, deadline=None)
@given(st.data())
def test_odd_values_in_metadata_files_are_refused_by_name_or_do_no_harm(
    told: Told, data: st.DataObject
) -> None:
    stated = json.loads(told.metadata.read_text())
    place = data.draw(st.sampled_from(list(places_in(stated))))
    odd = data.draw(st.sampled_from(ODD_VALUES))
    metadata = told.location / "metadata" / "odd.metadata.json"
    metadata.write_text(json.dumps(with_value(stated, place, odd)))

    _refreshed(told, metadata)


def _fields(schema: Any, place: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for field in schema["fields"]:
        yield (*place, field["name"]), field
        if isinstance(field["type"], dict) and field["type"].get("type") == "record":
            yield from _fields(field["type"], (*place, field["name"]))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["list", "manifest"])
@examples(60, deadline=None)
@given(st.data())
def test_odd_values_in_manifests_are_refused_by_name_or_do_no_harm(
    told: Told, kind: str, data: st.DataObject
) -> None:
    folder = told.location / "metadata"
    stated = json.loads(told.metadata.read_text())
    list_ = Path(stated["snapshots"][-1]["manifest-list"].removeprefix("file://"))
    _, _, manifests = read_avro(list_)
    manifest = Path(manifests[0]["manifest_path"].removeprefix("file://"))
    path = list_ if kind == "list" else manifest
    schema, head, records = read_avro(path)
    place, field = data.draw(st.sampled_from(list(_fields(schema))))
    type_ = data.draw(st.sampled_from(sorted(_AVRO)))
    field["type"] = type_
    field.pop("default", None)
    records = [with_value(record, place, _AVRO[type_]) for record in records]
    kept = folder / "kept"
    shutil.copy(path, kept)
    try:
        write_avro(path, schema, head, records)
        _refreshed(told, told.metadata)
    finally:
        kept.replace(path)


@pytest.fixture(scope="module")
def delta(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("delta")
    rows = pa.table({"id": [1, 2], "day": ["a", "b"], "s": pa.array([[{"x": 1}], None])})
    write_deltalake(folder, rows, partition_by=["day"])
    write_deltalake(folder, rows, mode="append")
    return folder


@examples(150, deadline=None)
@given(st.data())
def test_odd_values_in_logs_of_delta_are_refused_by_name_or_do_no_harm(
    delta: Path, data: st.DataObject
) -> None:
    commit = delta / "_delta_log" / f"{0:020}.json"
    kept = commit.read_bytes()
    actions = [json.loads(line) for line in kept.splitlines()]
    for action in actions:
        if "stats" in action.get("add", {}):
            action["add"]["stats"] = json.loads(action["add"]["stats"])
        if "metaData" in action:
            action["metaData"]["schemaString"] = json.loads(action["metaData"]["schemaString"])
    place = data.draw(st.sampled_from([one for one in places_in(actions) if len(one) > 1]))
    actions = with_value(actions, place, data.draw(st.sampled_from(ODD_VALUES)))
    for action in actions:
        for name, field in (("add", "stats"), ("metaData", "schemaString")):
            # These are JSON within JSON.
            if isinstance(action.get(name), dict) and isinstance(action[name].get(field), dict):
                action[name][field] = json.dumps(action[name][field])
    try:
        commit.write_text("\n".join(map(json.dumps, actions)))
        table = LoggedTable(location=str(delta))
        _require_named(lambda: take_version(table, None, None, ProgressMeter(), Here()), str(delta))
    finally:
        commit.write_bytes(kept)


@examples(40, deadline=None)
@given(st.data())
def test_odd_values_in_logs_of_streams_are_refused_by_name_or_do_no_harm(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("sink")
    path = folder / "part-0.parquet"
    pq.write_table(pa.table({"id": [1]}), path)
    entry = {
        "path": path.as_uri(),
        "size": path.stat().st_size,
        "isDir": False,
        "modificationTime": 1_700_000_000_000,
        "blockReplication": 1,
        "blockSize": 1,
        "action": "add",
    }
    place = data.draw(st.sampled_from(list(places_in(entry))))
    odd = with_value(entry, place, data.draw(st.sampled_from(ODD_VALUES)))
    (folder / "_spark_metadata").mkdir()
    (folder / "_spark_metadata" / "0").write_text(f"v1\n{json.dumps(odd)}")

    _require_named(lambda: take_inventory(Look(location=str(folder))), str(folder), path.name)


@pytest.mark.parametrize("line", ["true", '{"path": "a"} true', "[{}]", "\ud800"])
def test_a_line_that_is_not_an_object_does_not_end_the_process(tmp_path: Path, line: str) -> None:
    (tmp_path / "_spark_metadata").mkdir()
    text = f"v1\n{line}".encode(errors="surrogatepass")
    (tmp_path / "_spark_metadata" / "0").write_bytes(text)

    with pytest.raises(LocationError, match="not a log of Spark's"):
        take_inventory(Look(location=str(tmp_path)))
