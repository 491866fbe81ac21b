"""Figures of partitions whose files are in packs, over HTTP."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import windrow
from tests.support.tables import hive
from tests.support.tables.packs import pack_here, refresh_settled, unpublished_pack
from windrow_core.files.figures import FIGURE, FIGURES, SPARK_TYPE
from windrow_core.files.packs import PACK_KEY
from windrow_core.files.streams import stream_of

SOURCES = pa.schema(
    [
        ("path", pa.string()),
        ("size_bytes", pa.int64()),
        ("mtime_ns", pa.int64()),
        ("etag", pa.string()),
        ("row_count", pa.int64()),
        ("digest", pa.binary(32)),
        ("inode", pa.uint64()),
        ("changed_ns", pa.int64()),
    ]
)
STREAM = "application/vnd.apache.arrow.stream"


@pytest.fixture
def packed(client: windrow.Client, name: str, location: Path) -> str:
    """The name of a packed table of three partitions, with two files each."""
    for at in range(6):
        hive.write_file(location / f"ds=2026-11-0{at % 3 + 1}" / f"{at}.parquet", range(at, at + 3))
    client.register_table(name, str(location))
    pack_here(client, name)
    return name


def figures(client: windrow.Client, table: str, *columns: str) -> dict[str, list[Any]]:
    snapshot = client.table(table).current_snapshot
    assert snapshot is not None
    values = client.partition_values(table, snapshot.snapshot_id, figures=columns)
    return {name: values[name].to_pylist() for name in ("packed_rows", *columns)}


def test_partitions_have_the_figures_of_their_packed_files(
    client: windrow.Client, packed: str
) -> None:
    answer = figures(client, packed, "id", "nothing")

    assert answer["packed_rows"] == [6, 6, 6]
    assert answer["id"] == [
        {"count": 6, "least": at, "greatest": at + 5, "total": 6 * at + 15} for at in range(3)
    ]
    assert answer["nothing"] == [None] * 3


def test_files_of_texts_alone_are_packed_and_have_no_figures(
    client: windrow.Client, name: str, location: Path
) -> None:
    for at in range(4):
        path = location / f"ds=2026-11-0{at % 2 + 1}" / f"{at}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"text": [f"{at}", None], "ratio": [0.5, None]}), path)
    client.register_table(name, str(location))
    refresh_settled(client, name)

    outcome = client.pack(name, min_files=2, processes=1)

    assert [one.source_count for one in outcome.packs] == [4]
    answer = figures(client, name, "text")
    assert answer["packed_rows"] == [4, 4]
    assert answer["text"] == [None, None]
    rows = client.scan(name).to_table()["text"].to_pylist()
    assert sorted(rows, key=str) == ["0", "1", "2", "3", None, None, None, None]


def test_a_partition_with_a_file_in_no_pack_has_none(
    client: windrow.Client, packed: str, location: Path
) -> None:
    hive.write_file(location / "ds=2026-11-02" / "new.parquet", range(9))
    client.refresh(packed)

    answer = figures(client, packed, "id")

    assert answer["packed_rows"] == [6, None, 6]
    assert [one is None for one in answer["id"]] == [False, True, False]


def test_an_older_snapshot_and_withdrawn_packs_have_none(
    client: windrow.Client, packed: str, location: Path
) -> None:
    older = client.table(packed).current_snapshot
    assert older is not None
    (location / "ds=2026-11-02" / "1.parquet").unlink()
    client.refresh(packed)

    assert figures(client, packed, "id")["packed_rows"] == [6, 3, 6]
    values = client.partition_values(packed, older.snapshot_id, figures=["id"])
    assert values["packed_rows"].null_count == values["id"].null_count == 3
    for pack in client.list_packs(packed):
        client.withdraw_pack(packed, pack.pack_id)
    assert figures(client, packed, "id") == {"packed_rows": [None] * 3, "id": [None] * 3}


def test_more_figures_than_an_answer_may_have_are_none(
    client: windrow.Client, packed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("windrow_service.usecases.packs.figures._MOST_FIGURES", 5)

    assert figures(client, packed, "id")["packed_rows"] == [6, 6, 6]
    assert figures(client, packed, "id", "nothing") == {
        "packed_rows": [None] * 3,
        "id": [None] * 3,
        "nothing": [None] * 3,
    }


def test_figures_of_another_form_are_refused(
    client: windrow.Client, http: httpx.Client, name: str, location: Path
) -> None:
    hive.write_file(location / "ds=2026-11-01" / "a.parquet", range(3))
    hive.write_file(location / "ds=2026-11-01" / "b.parquet", range(3))
    client.register_table(name, str(location))
    refresh_settled(client, name)
    pack = unpublished_pack(http, name)
    rows = [one | {"digest": bytes.fromhex(one["digest"])} for one in pack.pop("sources")]
    files = pa.Table.from_pylist(rows, SOURCES.with_metadata({PACK_KEY: json.dumps(pack)}))

    def refused(figures: pa.Array) -> str:
        content = stream_of(files.append_column(FIGURES, figures))
        answer = http.post(
            f"/tables/{name}/packs", content=content, headers={"Content-Type": STREAM}
        )
        assert answer.status_code == 422, answer.text
        return str(answer.json()["detail"])

    def of_id(count: int, **metadata: str) -> pa.Array:
        field = pa.field("id", FIGURE, metadata=metadata or None)
        figure = {"count": count, "least": 0, "greatest": 2, "total": 3}
        return pa.array([{"id": figure}] * 2, pa.struct([field]))

    typed = {SPARK_TYPE.decode(): "bigint"}
    assert "is no struct" in refused(pa.array([1, 2]))
    assert "of another form" in refused(of_id(3))
    assert "more values than a file has rows" in refused(of_id(4, **typed))
    assert "more values than a file has rows" in refused(of_id(-1, **typed))
    content = stream_of(files.append_column(FIGURES, of_id(3, **typed)))
    headers = {"Content-Type": STREAM}
    http.post(f"/tables/{name}/packs", content=content, headers=headers).raise_for_status()
    assert figures(client, name, "id")["id"] == [
        {"count": 6, "least": 0, "greatest": 2, "total": 6}
    ]
