"""Tables of more fields than the setting allows are refused, whichever way they arrive."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.api.problems import problem_of
from tests.support.servers.coordinators import PLAIN, running
from windrow_service.settings import LimitSettings, Settings

MOST = 100
ARROW = {"Content-Type": "application/vnd.apache.arrow.stream"}
WIDE = ", ".join(f"f{at}: decimal(10, 2)" for at in range(MOST))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("wide")


@pytest.fixture(scope="module")
def http(folder: Path) -> Iterator[httpx.Client]:
    settings = Settings(
        state_dir=folder / "state",
        allowed_locations=(str(folder),),
        limits=LimitSettings(max_fields=MOST),
    )
    with running(settings) as url, httpx.Client(base_url=url, timeout=60, verify=PLAIN) as client:
        yield client


def refused(answer: httpx.Response, status: int, type_: str) -> None:
    detail = problem_of(answer, status, type_)["detail"]
    assert "WINDROW_LIMITS__MAX_FIELDS" in detail
    assert f"at most {MOST}" in detail


@pytest.mark.parametrize(
    "columns",
    [
        [{"name": f"c{at}", "type": "int"} for at in range(MOST + 1)],
        [{"name": "c", "type": f"struct<{WIDE}>"}],
        [{"name": "c", "type": f"array<struct<{WIDE.replace(':', '')}>>"}],
    ],
    ids=["columns", "fields", "fields without colons"],
)
def test_declared_columns_are_counted_with_their_fields(
    http: httpx.Client, folder: Path, columns: list[Any]
) -> None:
    body = {"location": str(folder / "declared"), "columns": columns}

    refused(http.put("/tables/declared", json=body), 422, "invalid-table")
    problem_of(http.get("/tables/declared"), 404, "table-not-found")


def test_as_many_fields_as_are_allowed_can_be_declared(http: httpx.Client, folder: Path) -> None:
    columns = [{"name": f"c{at}", "type": "decimal(10, 2)"} for at in range(MOST)]
    body = {"location": str(folder / "fits"), "columns": columns}

    assert http.put("/tables/fits", json=body).status_code == 201


def _stream(schema: pa.Schema, metadata: dict[str, str]) -> bytes:
    sink = pa.BufferOutputStream()
    plain = pa.schema([("path", pa.string()), ("size_bytes", pa.int64()), ("mtime_ns", pa.int64())])
    whole = pa.schema([*plain, ("row_count", pa.int64()), *schema], metadata)
    with pa.ipc.new_stream(sink, whole) as stream:
        stream.write_table(whole.empty_table())
    return bytes(sink.getvalue())


@pytest.mark.parametrize("way", ["columns", "fields", "statistics"])
def test_published_columns_are_counted_too(http: httpx.Client, folder: Path, way: str) -> None:
    name = f"published_{way}"
    http.put(f"/tables/{name}", json={"location": str(folder / name)}).raise_for_status()
    columns = [{"name": f"c{at}", "type": "int"} for at in range(MOST + 1)]
    if way == "fields":
        columns = [{"name": "c", "type": f"struct<{WIDE}>"}]
    schema, metadata = pa.schema([]), {"windrow:columns": json.dumps(columns)}
    if way == "statistics":
        bounds = pa.struct([("min", pa.int32()), ("max", pa.int32()), ("null_count", pa.int64())])
        schema = pa.schema([("stats", pa.struct([(f"c{at}", bounds) for at in range(MOST + 1)]))])
        metadata = {}

    path = f"/tables/{name}/snapshots"
    answer = http.post(path, content=_stream(schema, metadata), headers=ARROW)

    refused(answer, 422, "invalid-inventory")


def test_a_refresh_names_the_file_and_goes_on_once_it_is_gone(
    http: httpx.Client, folder: Path
) -> None:
    location = folder / "files"
    location.mkdir()
    pq.write_table(pa.table({"c0": [1]}), location / "narrow.parquet")
    wide = location / "wide.parquet"
    pq.write_table(pa.table({f"c{at}": [1] for at in range(MOST + 1)}), wide)
    http.put("/tables/files", json={"location": str(location)}).raise_for_status()

    answer = http.post("/tables/files/refresh")

    refused(answer, 409, "unreadable-file")
    assert "'wide.parquet'" in answer.json()["detail"]
    assert "narrow" not in answer.json()["detail"]
    wide.unlink()
    assert http.post("/tables/files/refresh").status_code == 200
