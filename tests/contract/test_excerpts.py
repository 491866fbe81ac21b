"""Plans of tables on object stores say where the columns asked for lie in large files."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.excerpts import excerpt, read
from tests.support.s3 import S3, s3_server
from tests.support.servers import PLAIN, running
from windrow.files.excerpts.outlines import Outline
from windrow.files.excerpts.places import columns_of
from windrow_service.settings import Settings

NAMES = [f"c{n}" for n in range(40)]


@pytest.fixture(scope="module")
def s3() -> Iterator[S3]:
    with s3_server() as server:
        yield server


@pytest.fixture(scope="module")
def http(s3: S3, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    settings = Settings(state_dir=tmp_path_factory.mktemp("state"), allowed_locations=("s3://tab",))
    with running(settings) as url, httpx.Client(verify=PLAIN, base_url=url, timeout=60) as client:
        yield client


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two large files of 40 columns, in one and in four row groups, and a small one."""
    folder = tmp_path_factory.mktemp("wide")
    for name, rows, group_rows in (("one", 4000, 4000), ("parts", 4000, 1000), ("small", 10, 10)):
        values = np.random.default_rng(1).random(rows)
        table = pa.table({name: values + at for at, name in enumerate(NAMES)})
        pq.write_table(table, folder / f"{name}.parquet", row_group_size=group_rows)
    return folder


def planned(http: httpx.Client, name: str, **request: Any) -> tuple[list[str], dict[Any, Any]]:
    """Return a plan's outlines, and its splits by file and first byte."""
    plan = http.post("/plans", json={"table": name, **request}).json()
    splits = [split for group in plan["groups"] for split in group["splits"]]
    return plan["outlines"], {(split["path"], split["start"]): split for split in splits}


def rows_of(folder: Path, split: dict[str, Any], outlines: list[str]) -> pa.Table:
    """Return the rows of the excerpt that a plan asks for."""
    file = (folder / split["path"]).read_bytes()
    outline = Outline.of_text(outlines[split["excerpt"]["outline"]])
    numbers = np.array(split["excerpt"]["chunks"])
    plan, content = excerpt(file, outline, numbers.reshape(-1, columns_of(outline.leaf_count)))
    assert plan.read_bytes < len(file) / 2
    return read(content)


def test_a_plan_says_where_the_columns_asked_for_lie_in_large_files(
    http: httpx.Client, s3: S3, folder: Path, name: str
) -> None:
    location = s3.upload(folder, "tab", f"{name}/wide")
    http.put(f"/tables/{name}", json={"location": location}).raise_for_status()
    http.post(f"/tables/{name}/refresh").raise_for_status()

    # The filter leaves rows to be left out, for which another column is needed.
    outlines, splits = planned(http, name, columns=["c7"], filter="c1 > 1.5")

    assert splits["small.parquet", 0]["excerpt"] is None
    assert len(outlines) == 1
    for file in ("one.parquet", "parts.parquet"):
        got = rows_of(folder, splits[file, 0], outlines)
        assert got.equals(pq.read_table(folder / file, columns=["c1", "c7"]))
    whole, splits = planned(http, name)
    assert not whole
    assert not any("excerpt" in split for split in splits.values())

    # A file more: what is known of the others is carried over.
    s3.client.upload_file(str(folder / "one.parquet"), "tab", f"{name}/wide/two.parquet")
    s3.requests.clear()
    http.post(f"/tables/{name}/refresh").raise_for_status()
    assert not [path for _, path in s3.requests if "one.parquet" in path]
    outlines, splits = planned(http, name, columns=["C7"])
    assert [split["excerpt"] is None for split in splits.values()].count(True) == 1

    # A split has its own row groups alone, in JSON as in a stream.
    request = {"columns": ["c39", "c0"], "options": {"max_split_size": 700_000}}
    outlines, splits = planned(http, name, **request)
    parts = [split for (file, _), split in sorted(splits.items()) if file == "parts.parquet"]
    assert len(parts) > 1
    rows = pa.concat_tables([rows_of(folder, part, outlines) for part in parts])
    assert rows.equals(pq.read_table(folder / "parts.parquet", columns=["c0", "c39"]))
    stream = http.post(
        "/plans",
        json={"table": name, **request},
        headers={"Accept": "application/vnd.apache.arrow.stream"},
    )
    with pa.ipc.open_stream(io.BytesIO(stream.content)) as reader:
        flat = [
            split for batch in reader for group in batch["splits"].to_pylist() for split in group
        ]
    assert {(split["path"], split["start"]): split["excerpt"] for split in flat} == {
        at: split["excerpt"] for at, split in splits.items()
    }


def test_files_on_disks_are_planned_as_they_are(
    tmp_path: Path, folder: Path, http: httpx.Client, s3: S3, name: str
) -> None:
    del s3
    settings = Settings(state_dir=tmp_path / "state", allowed_locations=(str(folder),))
    with running(settings) as url, httpx.Client(verify=PLAIN, base_url=url, timeout=60) as local:
        local.put(f"/tables/{name}", json={"location": str(folder)}).raise_for_status()
        local.post(f"/tables/{name}/refresh").raise_for_status()
        outlines, splits = planned(local, name, columns=["c7"])
    assert not outlines
    assert not any("excerpt" in split for split in splits.values())
