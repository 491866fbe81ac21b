"""Plans of tables on object stores show where requested columns lie in large files."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.files.excerpts import excerpt, read
from tests.support.servers.coordinators import PLAIN, running
from tests.support.servers.s3 import S3, s3_server
from tests.unit.inventory.files import as_previous, take_inline
from windrow_core.files.excerpts.chunk_ranges import columns_of
from windrow_core.files.excerpts.outlines import Outline
from windrow_core.files.footers import footer_bytes_in
from windrow_core.files.rows import EXCERPT_FIELDS
from windrow_service.settings import Settings
from windrow_tables.executor.errors import StaleFileError
from windrow_tables.executor.reading import read_group
from windrow_tables.executor.spec import ReadLimits, ReadSpec, SortKey

ARROW = {"Accept": "application/vnd.apache.arrow.stream"}
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


def to_read(http: httpx.Client, name: str, **request: Any) -> tuple[ReadSpec, pa.RecordBatch]:
    """Plan a table of doubles, and return the spec and the splits to read."""
    plan = http.post("/plans", json={"table": name, **request}).json()
    with pa.ipc.open_stream(
        http.post("/plans", json={"table": name, **request}, headers=ARROW).content
    ) as reader:
        groups = reader.read_all()["splits"].combine_chunks()
    spec = ReadSpec(
        table=name,
        location=plan["location"],
        data=pa.schema([(column["name"], pa.float64()) for column in plan["columns"]]),
        hidden=pa.schema([]),
        partition=pa.schema([]),
        output=tuple(column["name"] for column in plan["columns"]),
        outlines=tuple(plan["outlines"]),
    )
    return spec, pa.RecordBatch.from_struct_array(groups.flatten())


@dataclass(frozen=True)
class Sorted:
    """A table of two equal files of four row groups each, sorted by c7.

    Attributes:
        rows: Rows of each file.
        file_bytes: Length of each file.
        footer_bytes: Length of its footer.
    """

    name: str
    rows: pa.Table
    file_bytes: int
    footer_bytes: int


@pytest.fixture(scope="module")
def sorted_table(http: httpx.Client, s3: S3, tmp_path_factory: pytest.TempPathFactory) -> Sorted:
    folder = tmp_path_factory.mktemp("sorted")
    rng = np.random.default_rng(3)
    columns = {name: rng.random(4000) for name in NAMES}
    rows = pa.table(columns | {"c7": np.sort(columns["c7"])})
    for file in ("a.parquet", "b.parquet"):
        pq.write_table(rows, folder / file, row_group_size=1000, use_dictionary=False)
    location = s3.upload(folder, "tab", "sorted")
    http.put("/tables/sorted", json={"location": location}).raise_for_status()
    http.post("/tables/sorted/refresh").raise_for_status()
    content = (folder / "a.parquet").read_bytes()
    return Sorted("sorted", rows, len(content), footer_bytes_in(content))


def rows_of(folder: Path, split: dict[str, Any], outlines: list[str]) -> pa.Table:
    """Return the rows of the excerpt that a plan asks for."""
    file = (folder / split["path"]).read_bytes()
    outline = Outline.of_text(outlines[split["excerpt"]["outline"]])
    numbers = np.array(split["excerpt"]["chunks"])
    plan, content = excerpt(file, outline, numbers.reshape(-1, columns_of(outline.leaf_count)))
    assert plan.read_bytes < len(file) / 2
    return read(content)


@pytest.mark.slow
def test_a_plan_shows_where_requested_columns_lie_in_large_files(
    http: httpx.Client, s3: S3, folder: Path, name: str
) -> None:
    location = s3.upload(folder, "tab", f"{name}/wide")
    http.put(f"/tables/{name}", json={"location": location}).raise_for_status()
    http.post(f"/tables/{name}/refresh").raise_for_status()

    # Pruning does not decide the filter, so its column is needed too.
    outlines, splits = planned(http, name, columns=["c7"], filter="c1 > 1.5")

    assert splits["small.parquet", 0]["excerpt"] is None
    assert len(outlines) == 1
    for file in ("one.parquet", "parts.parquet"):
        got = rows_of(folder, splits[file, 0], outlines)
        assert got.equals(pq.read_table(folder / file, columns=["c1", "c7"]))
    whole, splits = planned(http, name)
    assert not whole
    assert not any("excerpt" in split for split in splits.values())

    # One file is added: facts known about the others are carried over.
    s3.client.upload_file(str(folder / "one.parquet"), "tab", f"{name}/wide/two.parquet")
    s3.requests.clear()
    http.post(f"/tables/{name}/refresh").raise_for_status()
    assert not [path for _, path in s3.requests if "one.parquet" in path]
    outlines, splits = planned(http, name, columns=["C7"])
    assert [split["excerpt"] is None for split in splits.values()].count(True) == 1

    # An unchanged file that is published again keeps its excerpt; a new one is read whole.
    known = splits["two.parquet", 0]
    again = {field: known[field] for field in ("path", "size_bytes", "mtime_ns", "row_count")}
    body = {
        "mode": "delta",
        "added": [again, {**again, "path": "new.parquet"}],
        "removed": ["small.parquet"],
    }
    http.post(f"/tables/{name}/snapshots", json=body).raise_for_status()
    _, splits = planned(http, name, columns=["C7"])
    assert splits["two.parquet", 0]["excerpt"] == known["excerpt"]
    assert splits["new.parquet", 0]["excerpt"] is None

    # A split lists only its own row groups, in JSON and in a stream.
    request = {"columns": ["c39", "c0"], "options": {"max_split_size": 700_000}}
    outlines, splits = planned(http, name, **request)
    parts = [split for (file, _), split in sorted(splits.items()) if file == "parts.parquet"]
    assert len(parts) > 1
    rows = pa.concat_tables([rows_of(folder, part, outlines) for part in parts])
    assert rows.equals(pq.read_table(folder / "parts.parquet", columns=["c0", "c39"]))
    stream = http.post(
        "/plans",
        json={"table": name, **request},
        headers=ARROW,
    )
    with pa.ipc.open_stream(io.BytesIO(stream.content)) as reader:
        flat = [
            split for batch in reader for group in batch["splits"].to_pylist() for split in group
        ]
    assert {(split["path"], split["start"]): split["excerpt"] for split in flat} == {
        at: split["excerpt"] for at, split in splits.items()
    }


@pytest.mark.slow
def test_a_task_requests_the_ranges_of_its_columns_and_no_footer(
    http: httpx.Client, s3: S3, tmp_path: Path, name: str
) -> None:
    # 200 columns in 1 MB.
    rng = np.random.default_rng(2)
    table = pa.table({f"c{at}": rng.random(640) for at in range(200)})
    for file in ("a", "b", "c"):
        pq.write_table(table, tmp_path / f"{file}.parquet", use_dictionary=False)
    location = s3.upload(tmp_path, "tab", f"{name}/wide")
    http.put(f"/tables/{name}", json={"location": location}).raise_for_status()
    http.post(f"/tables/{name}/refresh").raise_for_status()
    footer = pq.read_metadata(tmp_path / "a.parquet")
    chunk = footer.row_group(0).column(77)
    begin, length = chunk.data_page_offset, chunk.total_compressed_size

    spec, splits = to_read(http, name, columns=["c77"])
    s3.requests.clear()
    s3.asked.clear()
    counts: Counter[str] = Counter()
    rows = pa.Table.from_batches(read_group(spec, splits, None, counts=counts))

    assert rows["c77"].to_pylist() == table["c77"].to_pylist() * 3
    assert [method for method, _ in s3.requests] == ["GET"] * 3
    assert len({path for _, path in s3.requests}) == 3
    assert {asked for asked, _ in s3.asked} == {f"bytes={begin}-{begin + length - 1}"}
    assert all(etag for _, etag in s3.asked)
    assert counts["requests"] == 3

    # An overwrite of the same size is noticed.
    s3.client.put_object(
        Bucket="tab",
        Key=f"{name}/wide/b.parquet",
        Body=bytes((tmp_path / "b.parquet").stat().st_size),
    )
    with pytest.raises(StaleFileError, match=r"b\.parquet"):
        list(read_group(spec, splits, None))


@pytest.mark.parametrize(
    "limits",
    [
        pytest.param(ReadLimits(), id="one excerpt"),
        pytest.param(ReadLimits(max_buffered_file_bytes=70_000), id="row group by row group"),
        pytest.param(ReadLimits(max_buffered_file_bytes=1_000), id="as streams"),
        pytest.param(ReadLimits(max_batch_rows=100), id="small batches"),
    ],
)
@pytest.mark.parametrize("sort", [(), ("c7",)], ids=["as they are", "sorted"])
def test_excerpts_are_read_within_any_limits(
    http: httpx.Client, s3: S3, sorted_table: Sorted, limits: ReadLimits, sort: tuple[str, ...]
) -> None:
    request = {"columns": ["C7", "c30"], "options": {"max_split_size": 400_000}}
    spec, splits = to_read(http, sorted_table.name, **request)
    keys = tuple(SortKey(name=name, descending=False, nulls_first=True) for name in sort)
    spec = replace(spec, limits=limits, sort=keys)
    s3.asked.clear()

    batches = list(read_group(spec, splits, None))

    got = pa.Table.from_batches(batches)
    expected = pa.concat_tables([sorted_table.rows.select(["c7", "c30"])] * 2)
    assert got.sort_by("c30").equals(expected.sort_by("c30").combine_chunks())
    if sort:
        assert got["c7"].to_pylist() == sorted(expected["c7"].to_pylist())
    assert max(batch.num_rows for batch in batches) <= limits.max_batch_rows
    assert len(splits) > 2
    # No request asks for a whole file or for its end.
    ends = [int(str(asked).rpartition("-")[2]) for asked, _ in s3.asked]
    assert max(ends) < sorted_table.file_bytes - sorted_table.footer_bytes


def test_footers_of_large_files_in_older_inventories_are_read_once_more(
    s3: S3, folder: Path, name: str
) -> None:
    location = s3.upload(folder, "tab", f"{name}/wide")
    now = take_inline(location)
    older = now.files
    for field in ("etag", *EXCERPT_FIELDS):
        at = older.schema.get_field_index(field)
        of = older.schema.field(at)
        older = older.set_column(at, of, pa.nulls(len(older), of.type))

    after = take_inline(location, previous=replace(as_previous(now), files=older))
    again = take_inline(location, previous=as_previous(after))

    assert (after.footers_read, after.added_count, after.removed_count) == (2, 0, 0)
    assert after.files.equals(now.files)
    assert (again.footers_read, again.added_count) == (0, 0)


def test_files_on_disks_are_planned_without_excerpts(
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
