"""Columns with unusable names or types are refused by name, wherever they come from."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.api.problems import problem_of

ARROW = {"Content-Type": "application/vnd.apache.arrow.stream"}
FILE = {"path": ["f"], "size_bytes": [10], "mtime_ns": [1], "row_count": [1]}
UNUSABLE = pytest.mark.parametrize("column", ["", "x" * 1025], ids=["empty", "long"])
WIDE = pa.struct([(f"field_{n:06d}", pa.int64()) for n in range(4_000)])


def publish(
    http: httpx.Client, name: str, files: pa.Table, columns: list[Any] | None = None
) -> httpx.Response:
    if columns is not None:
        files = files.replace_schema_metadata({"windrow:columns": json.dumps(columns)})
    stream = io.BytesIO()
    with pa.ipc.new_stream(stream, files.schema) as writer:
        writer.write_table(files)
    return http.post(f"/tables/{name}/snapshots", content=stream.getvalue(), headers=ARROW)


@pytest.fixture
def table(http: httpx.Client, name: str, location: Path) -> str:
    location.mkdir()
    http.put(f"/tables/{name}", json={"location": str(location)}).raise_for_status()
    return name


@UNUSABLE
def test_a_column_without_a_usable_name_is_not_published(
    http: httpx.Client, table: str, column: str
) -> None:
    bounds = pa.array([{column: {"min": 1, "max": 2, "null_count": 0}}])

    by_statistics = publish(http, table, pa.table({**FILE, "stats": bounds}))
    by_list = publish(http, table, pa.table(FILE), [{"name": column, "type": "int"}])

    assert "characters" in problem_of(by_statistics, 422, "invalid-inventory")["detail"]
    problem_of(by_list, 422, "invalid-inventory")


@UNUSABLE
def test_a_file_with_a_column_without_a_usable_name_is_named_by_the_refresh(
    http: httpx.Client, table: str, location: Path, column: str
) -> None:
    pq.write_table(pa.table({"id": [1], column: [2]}), location / "part.parquet")

    refused = http.post(f"/tables/{table}/refresh")

    detail = problem_of(refused, 409, "column-name")["detail"]
    assert "part.parquet" in detail
    assert "declare the table's columns without it" in detail
    declared = {"location": str(location), "columns": [{"name": "id", "type": "bigint"}]}
    http.put(f"/tables/{table}", json=declared).raise_for_status()
    assert http.post(f"/tables/{table}/refresh").is_success


def test_a_type_with_too_long_a_name_is_refused(
    http: httpx.Client, table: str, location: Path
) -> None:
    pq.write_table(pa.table({"wide": pa.array([None], WIDE), "id": [1]}), location / "part.parquet")
    text = "struct<" + ",".join(f"field_{n:06d}:bigint" for n in range(4_000)) + ">"

    problem_of(http.post(f"/tables/{table}/refresh"), 409, "unsupported-type")
    listed = publish(http, table, pa.table(FILE), [{"name": "wide", "type": text}])
    assert "characters" in problem_of(listed, 422, "invalid-inventory")["detail"]


@pytest.mark.parametrize("sql", ["`` = 1", "`` IN (1)", "NOT `` IS NULL"])
def test_a_filter_on_an_empty_name_is_refused_with_the_reason(
    http: httpx.Client, events: str, sql: str
) -> None:
    detail = problem_of(
        http.post("/plans", json={"table": events, "filter": sql}), 422, "invalid-filter"
    )["detail"]

    assert "the name is empty" in detail
