"""Registered Iceberg tables keep their own metadata below `/iceberg`, and readers get it from there."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest
from pyiceberg.table import Table

import windrow
from tests.support.engines import asking
from tests.support.engines.answers import load, refusal
from tests.support.tables.iceberg import catalog_in
from windrow_calls.errors import ProblemError

ROWS = pa.table({"id": [1, 2, 3]})


@pytest.fixture
def table(location: Path) -> Table:
    """An Iceberg table of two snapshots, with a tag at the first."""
    catalog = catalog_in(location.parent)
    properties = {"write.data.path": f"file://{location}/elsewhere", "owner": "sales"}
    made = catalog.create_table(
        f"ns.{location.name}", ROWS.schema, f"file://{location}", properties=properties
    )
    made.append(ROWS)
    first = made.current_snapshot()
    assert first is not None
    with made.manage_snapshots() as refs:
        refs.create_tag(first.snapshot_id, "nightly")
    made.append(ROWS)
    made.append(ROWS)
    return made


def registered(client: windrow.Client, name: str, table: Table, **options: str) -> None:
    location = table.location().removeprefix("file://")
    client.register_table(name, location, "iceberg", format_options=options, replace=True)
    client.refresh(name)


def own_json(table: Table) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(metadata_file(table).read_text())
    return content


def metadata_file(table: Table) -> Path:
    return Path(table.metadata_location.removeprefix("file://"))


def test_readers_get_the_newest_metadata_of_the_table_without_what_only_writers_need(
    client: windrow.Client, http: httpx.Client, name: str, table: Table
) -> None:
    registered(client, name, table)
    table.append(ROWS)

    answer = load(http, name)

    body = answer.json()
    assert body["metadata-location"] == str(metadata_file(table))
    assert body["config"] == {}
    properties = body["metadata"]["properties"]
    assert properties["owner"] == "sales"
    assert properties["write.data.path"].startswith("read-only:")
    assert properties["gc.enabled"] == "false"
    assert body["metadata"] == {**own_json(table), "properties": properties}
    again = http.get(answer.url, headers={"If-None-Match": answer.headers["ETag"]})
    assert again.status_code == 304


def test_only_snapshots_of_branches_and_tags_are_sent_if_that_is_asked_for(
    client: windrow.Client, http: httpx.Client, name: str, table: Table
) -> None:
    registered(client, name, table)

    metadata = load(http, name, snapshots="refs").json()["metadata"]

    ids = {ref.snapshot_id for ref in table.metadata.refs.values()}
    assert len(table.snapshots()) == 3
    assert {one["snapshot-id"] for one in metadata["snapshots"]} == ids
    assert {one["snapshot-id"] for one in metadata["snapshot-log"]} == ids


@pytest.mark.parametrize("log", ["none", "old", "whole"])
def test_the_log_of_snapshots_ends_with_the_current_one_because_duckdb_reads_its_last(
    client: windrow.Client, http: httpx.Client, name: str, table: Table, log: str
) -> None:
    first, second, third = (one.snapshot_id for one in table.snapshots())
    metadata = own_json(table)
    if log == "none":
        del metadata["snapshot-log"]
    elif log == "old":
        del metadata["snapshot-log"][-1]
    else:
        metadata["current-snapshot-id"] = metadata["refs"]["main"]["snapshot-id"] = second
    write_next(table, json.dumps(metadata).encode())
    registered(client, name, table)

    answers = [load(http, name, snapshots=some).json()["metadata"] for some in ("all", "refs")]

    both = [[one["snapshot-id"] for one in answer["snapshot-log"]] for answer in answers]
    whole = {"none": [first, second, third], "old": [first, second, third]}
    assert both[0] == whole.get(log, [first, second, third, second])
    assert both[1] == ([first, second] if log == "whole" else [first, third][log == "none" :])
    times = [one["timestamp-ms"] for one in answers[0]["snapshot-log"]]
    assert times == sorted(times)


def test_a_table_with_snapshots_of_which_none_is_current_is_refused(
    client: windrow.Client, http: httpx.Client, name: str, table: Table
) -> None:
    registered(client, name, table)
    metadata = own_json(table)
    metadata["current-snapshot-id"] = -1
    metadata["snapshot-log"] = []
    metadata["refs"] = {"nightly": metadata["refs"]["nightly"]}
    write_next(table, json.dumps(metadata).encode())

    assert "none of them is the current one" in refusal(load(http, name))


def test_a_table_that_is_read_at_a_branch_or_tag_is_refused(
    client: windrow.Client, http: httpx.Client, name: str, table: Table
) -> None:
    registered(client, name, table, ref="nightly")

    assert "it is read at 'nightly', and engines read 'main'" in refusal(load(http, name))
    registered(client, name, table, ref="main")
    assert load(http, name).status_code == 200


@pytest.mark.parametrize("what", ["location", "manifest-list", "statistics-path", "metadata-file"])
def test_metadata_that_names_files_elsewhere_is_refused_by_name(
    client: windrow.Client,
    http: httpx.Client,
    name: str,
    table: Table,
    tmp_path: Path,
    what: str,
) -> None:
    registered(client, name, table)
    metadata, elsewhere = own_json(table), f"{tmp_path}/elsewhere"
    if what == "location":
        metadata["location"] = elsewhere
    elif what == "manifest-list":
        metadata["snapshots"][0][what] = f"{elsewhere}/list.avro"
    elif what == "statistics-path":
        snapshot = metadata["current-snapshot-id"]
        one = {"snapshot-id": snapshot, what: f"{elsewhere}/x.puffin", "file-size-in-bytes": 1}
        one |= {"file-footer-size-in-bytes": 1, "blob-metadata": []}
        metadata["statistics"] = [one]
    else:
        metadata["metadata-log"].append({what: f"file://{elsewhere}/x", "timestamp-ms": 1})
    write_next(table, json.dumps(metadata).encode())

    message = refusal(load(http, name))

    assert elsewhere in message
    assert "WINDROW_ALLOWED_LOCATIONS" in message


def test_snapshots_without_lists_of_manifests_are_refused_by_what_they_are(
    client: windrow.Client, http: httpx.Client, name: str, table: Table
) -> None:
    registered(client, name, table)
    metadata = own_json(table)
    snapshot = metadata["snapshots"][0]
    snapshot["manifests"] = [snapshot.pop("manifest-list")]
    write_next(table, json.dumps(metadata | {"format-version": 1}).encode())

    message = refusal(load(http, name))

    assert f"snapshot {snapshot['snapshot-id']} without a list of manifests" in message
    assert "expire this snapshot" in message


def test_a_table_that_was_never_read_says_why_its_refresh_has_failed(
    client: windrow.Client, http: httpx.Client, name: str, table: Table
) -> None:
    path = write_next(table, b'{"format-version": 9}')
    client.register_table(name, table.location().removeprefix("file://"), "iceberg")
    assert load(http, name).status_code == 404
    with pytest.raises(ProblemError):
        client.refresh(name)

    message = refusal(load(http, name))

    assert "its last refresh failed" in message
    assert "format version 9" in message
    assert path.name in message


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (gzip.compress(bytes(70 * 2**20)), "has more than 67,108,864 bytes"),
        (b'{"format-version": 2', "is damaged: it is not JSON"),
        (b'{"format-version": 9}', "format version 9"),
        (b"[" * 100_000, "is damaged"),
    ],
)
def test_metadata_that_windrow_would_not_read_is_refused_by_name(
    client: windrow.Client,
    http: httpx.Client,
    name: str,
    table: Table,
    content: bytes,
    words: str,
) -> None:
    registered(client, name, table)
    path = write_next(table, content)

    message = refusal(load(http, name))

    assert words in message
    assert path.name in message


def write_next(table: Table, content: bytes) -> Path:
    """Write the next metadata file of a table."""
    before = metadata_file(table)
    number = int(before.name.split("-")[0]) + 1
    path = before.with_name(f"{number:05}-next.metadata.json")
    path.write_bytes(content)
    return path


@pytest.mark.slow
def test_a_table_that_duckdb_writes_is_read(
    client: windrow.Client, http: httpx.Client, name: str, location: Path
) -> None:
    location.parent.mkdir(exist_ok=True)
    written = "SELECT range AS id, 'x' || range AS label FROM range(3)"
    copy = f"COPY ({written}) TO '{location}' (FORMAT iceberg)"
    asking.answers_elsewhere(str(http.base_url), {"duckdb": [copy]})
    client.register_table(name, str(location), "iceberg")

    client.refresh(name)

    rows = client.scan(name, filter="id > 0").to_table()
    assert rows.to_pydict() == {"id": [1, 2], "label": ["x1", "x2"]}
