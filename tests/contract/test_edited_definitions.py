"""Definitions, lists of partitions and inventories that were edited at random: refused, or kept and used."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from tests.support.files.random_edits import other_document
from tests.support.laws import examples

# By day, test_any_request.py draws requests from the contract.
pytestmark = [pytest.mark.slow, pytest.mark.nightly]

COLUMNS = [
    {"name": "id", "type": "bigint"},
    {"name": "price", "type": "decimal(9,2)"},
    {"name": "day", "type": "date"},
    {"name": "inner", "type": "struct<a:int,b:array<string>>"},
]
PARTITION = [{"name": "ds", "type": "date"}, {"name": "region", "type": "string"}]
FOLDERS = ("ds=2026-11-01/region=a", "ds=2026-11-02/region=b")


@pytest.fixture
def sent(location: Path) -> dict[str, Any]:
    """What is sent of a table: its definition, its list of partitions and its inventory."""
    type_ = pa.struct([("a", pa.int32()), ("b", pa.list_(pa.string()))])
    rows = pa.table(
        {
            "id": [1, 2],
            "price": pa.array([1, 2], pa.decimal128(9, 2)),
            "day": pa.array([1, 2], pa.date32()),
            "inner": pa.array([{"a": 1, "b": ["x"]}, None], type_),
        }
    )
    files = []
    for folder in FOLDERS:
        (location / folder).mkdir(parents=True)
        file = location / folder / "f.parquet"
        pq.write_table(rows, file)
        status = file.stat()
        files.append(
            {
                "path": f"{folder}/f.parquet",
                "size_bytes": status.st_size,
                "mtime_ns": status.st_mtime_ns,
                "row_count": 2,
                "row_group_offsets": [4],
                "grouped_columns": ["id"],
                "stats": {
                    "id": {"min": 1, "max": 2, "null_count": 0},
                    "day": {"min": "1970-01-02", "max": "1970-01-03", "null_count": 0},
                    "price": {"min": "0.01", "max": "2.00", "null_count": 0},
                },
            }
        )
    definition = {
        "location": str(location),
        "format": "parquet",
        "columns": COLUMNS,
        "partition_columns": PARTITION,
        "sort_columns": [{"name": "id", "descending": False}],
        "bloom_columns": ["id"],
        "plan_options": {"strategy": "balanced", "max_split_size": "64MB"},
    }
    return {
        "definition": definition,
        "listed": {**definition, "listed_partitions": True},
        "partitions": {
            "partitions": [
                {"values": [folder[3:13], folder[-1]], "location": str(location / folder)}
                for folder in FOLDERS
            ]
        },
        "inventory": {"mode": "full", "columns": COLUMNS, "added": files, "removed": []},
    }


def _answers(http: httpx.Client, name: str, sent: Any) -> Iterator[httpx.Response]:
    table = f"/tables/{name}"

    def send(method: str, path: str, part: str) -> httpx.Response:
        body = sent.get(part) if isinstance(sent, dict) else sent
        headers = {"Content-Type": "application/json"}
        return http.request(method, path, content=json.dumps(body), headers=headers)

    def uses() -> Iterator[httpx.Response]:
        yield http.post("/plans", json={"table": name, "filter": "id = 1 AND day > '1970-01-01'"})
        yield http.get(f"{table}/advice")
        yield http.get(f"/iceberg/v1/namespaces/default/tables/{name}")

    http.delete(table)
    yield send("PUT", table, "definition")
    yield send("POST", f"{table}/snapshots", "inventory")
    yield from uses()
    yield http.post(f"{table}/refresh?full=true")
    yield from uses()
    http.delete(table)
    yield send("PUT", table, "listed")
    yield send("PUT", f"{table}/partitions", "partitions")
    yield http.post(f"{table}/refresh?full=true")
    yield from uses()


def test_what_is_sent_unedited_is_kept_and_used(
    http: httpx.Client, name: str, sent: dict[str, Any]
) -> None:
    answers = list(_answers(http, name, sent))

    # Published inventories do not say how columns are stored.
    refusals = [one for one in answers if one.status_code >= 300]
    assert {one.status_code for one in refusals} == {406}
    assert len(refusals) < 3


@examples(20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**63))
def test_what_is_sent_edited_is_refused_or_used(
    http: httpx.Client, name: str, sent: dict[str, Any], seed: int
) -> None:
    for answer in _answers(http, name, other_document(sent, Random(seed))):
        assert answer.status_code < 500, (answer.url.path, answer.text)
        assert len(answer.text) < 20_000
