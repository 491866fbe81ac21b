"""`windrow write list | streams | recover`, against a real coordinator process."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.faults.writers import report_of, stage
from tests.unit.cli.conftest import Command
from windrow.client import Client
from windrow.connecting import connect
from windrow_core.models import StreamBatch
from windrow_spark.streaming.waiting import WaitingBatch, WaitingFolder
from windrow_tables.commits import TableWrite, begin

TABLE = "written.events"


@pytest.fixture
def client(coordinator_url: str, tables_root: Path) -> Iterator[Client]:
    with connect(coordinator_url) as client:
        client.register_table(TABLE, str(tables_root / "written"))
        yield client
        client.delete_table(TABLE)
        shutil.rmtree(tables_root / "written", ignore_errors=True)


def die(write: TableWrite) -> None:
    """Leave a write as a process that died would leave it."""
    write._lease.end()
    write._lock.release()


def test_writes_are_listed_with_the_figures_of_their_reports(
    windrow: Command, client: Client
) -> None:
    said = windrow("write", "list", TABLE)
    assert (said.code, said.err) == (0, "")
    assert "nothing has been written" in said.out

    with begin(client, TABLE) as write:
        write.commit(report_of(stage(write.folder, {"one.parquet": range(12_345)})))
    with begin(client, TABLE, "overwrite", "compaction") as undone:
        pass
    text = windrow("write", "list", TABLE).out
    (listed,) = json.loads(windrow("write", "list", TABLE, "--limit", "1", "--json").out)["writes"]

    rows = [line.split() for line in text.splitlines()]
    first, second = (row for row in rows if row and row[0].isalnum() and row[0] != "write")
    assert (first[0], second[0]) == (undone.write_id[:8], write.write_id[:8])
    assert {"undone", "compaction"} <= set(first)
    assert {"published", "append", "exact", "12,345", "1", "0"} <= set(second)
    assert (listed["write_id"], listed["state"]) == (undone.write_id, "undone")


def test_recovery_reports_the_outcome_of_each_write(windrow: Command, client: Client) -> None:
    assert "no write" in windrow("write", "recover", TABLE).out

    lives, died = begin(client, TABLE), begin(client, TABLE)
    die(died)
    done = json.loads(windrow("write", "recover", TABLE, "--json").out)["writes"]

    outcomes = {one["write_id"]: one["outcome"] for one in done}
    assert outcomes == {lives.write_id: "left", died.write_id: "undone"}
    text = windrow("write", "recover", TABLE).out
    assert f"{lives.write_id} left: its driver is running" in text
    lives.undo()


def test_streams_and_their_waiting_rows_are_listed_and_left_by_a_recovery(
    windrow: Command, client: Client, tables_root: Path
) -> None:
    assert "no stream" in windrow("write", "streams", TABLE).out

    query_id = "3f0e9a44-5b1c-4d7a-9e57-0c2d8f61b7a3"
    batch = StreamBatch(query_id=query_id, batch_id=4, query_name="clicks")
    with begin(client, TABLE, batch=batch) as write:
        write.commit(report_of(stage(write.folder, {"ds=2026-11-02/a.parquet": [1]})))
    folder = WaitingFolder(str(tables_root / "written"), query_id)
    figures = {"size_bytes": 9, "partitions": (), "schema": "", "staged_at_s": 0.0}
    names = {"query_name": "clicks", "checkpoint": None}
    for batch_id in (5, 7):
        folder.keep(folder.new_folder(), WaitingBatch(batch_id, 1_000, **figures, **names))

    text = windrow("write", "streams", TABLE).out
    assert all(word in text for word in (query_id, "clicks", "2,000"))
    listed = json.loads(windrow("write", "streams", TABLE, "--json").out)
    waiting = [{"query_id": query_id, "batches": 2, "rows": 2_000}]
    assert (listed["streams"][0]["batch_id"], listed["waiting"]) == (4, waiting)
    left = windrow("write", "recover", TABLE).out.replace("\n", "")
    assert f"stream {query_id} is left: its query writes the 2,000 rows of 2 batches" in left
    assert json.loads(windrow("write", "recover", TABLE, "--json").out)["waiting"] == waiting
    assert [one.batch_id for one in folder.batches()] == [5, 7]


def test_a_missing_table_is_reported_in_one_line(windrow: Command) -> None:
    for command in ("list", "streams", "recover"):
        said = windrow("write", command, "no.such")
        assert (said.code, said.out) == (1, "")
        assert said.err.startswith("windrow: no table 'no.such'")
