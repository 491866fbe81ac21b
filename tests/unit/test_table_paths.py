"""A link that replaces a folder after the listing cannot lead out of the table's location."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.files.listings import list_files, read_footers
from tests.support.plans.plans import group_of
from tests.support.spark.host_caches import cache_in, keys_in, settle
from tests.unit.inventory.files import inline, write
from windrow_core.files.errors import UnreadableFootersError
from windrow_core.files.table_paths import absolute_path, home_of, open_beneath, path_in
from windrow_service.inventory.footers.blooms import build_missing, carried_filters
from windrow_service.inventory.progress import ProgressMeter
from windrow_tables.executor.errors import UnreadableFileError
from windrow_tables.executor.reading import read_group
from windrow_tables.executor.spec import ReadLimits, ReadSpec
from windrow_tables.host_cache.cache import FileKey

OUT = "leads out of the table's location"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    write(tmp_path / "table", "ds=1/a.parquet")
    return tmp_path / "table"


def swap(table: Path, to: Path) -> None:
    """Replace a folder by a link to the same files with the same sizes and times."""
    (table / "ds=1").rename(to)
    (table / "ds=1").symlink_to(to)


def spec_of(table: Path, buffered: int) -> ReadSpec:
    return ReadSpec(
        table="t",
        location=str(table),
        data=pa.schema([("x", pa.int64())]),
        hidden=pa.schema([]),
        partition=pa.schema([]),
        output=("x",),
        limits=ReadLimits(max_buffered_file_bytes=buffered, max_decoded_at_once_bytes=buffered),
    )


@pytest.mark.parametrize("buffered", [2**20, 10])
@pytest.mark.parametrize("cached_on", [None, "here"])
def test_a_task_reads_nothing_outside_the_location(
    table: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    buffered: int,
    cached_on: str | None,
) -> None:
    cache = cache_in(tmp_path / "cache")
    monkeypatch.setenv("WINDROW_CACHE_DIR", str(tmp_path / "cache"))
    group = group_of(table)
    swap(table, tmp_path / "outside")

    with pytest.raises(UnreadableFileError, match=OUT) as caught:
        list(read_group(spec_of(table, buffered), group, None, cached_on))

    assert "ds=1/a.parquet" in str(caught.value)
    assert keys_in(cache) == set()


def test_no_footer_outside_the_location_is_read(table: Path, tmp_path: Path) -> None:
    files = list_files(str(table)).files
    swap(table, tmp_path / "outside")

    with pytest.raises(UnreadableFootersError, match=OUT):
        read_footers(str(table), files, executor=inline)


def test_no_bloom_filter_is_built_from_files_outside_the_location(
    table: Path, tmp_path: Path
) -> None:
    files = list_files(str(table)).files
    swap(table, tmp_path / "outside")
    nothing = carried_filters(["x"], pa.nulls(1, pa.int32()), None)

    with pytest.raises(UnreadableFootersError, match=OUT):
        build_missing(nothing, str(table), files, ProgressMeter(), inline)


def test_a_link_within_the_location_is_followed(table: Path) -> None:
    group = group_of(table)
    swap(table, table / "_moved")

    (batch,) = read_group(spec_of(table, 2**20), group, None)

    assert batch.to_pydict() == {"x": [1, 2, 3]}


def test_a_location_may_be_given_as_a_link(table: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(table)
    group = group_of(tmp_path / "link")

    (batch,) = read_group(spec_of(tmp_path / "link", 2**20), group, None)

    assert batch.num_rows == 3


def test_a_folder_whose_name_only_starts_like_the_location_is_outside(table: Path) -> None:
    beside = write(Path(f"{table}s"), "a.parquet")

    with pytest.raises(OSError, match=OUT):
        open_beneath(home_of(str(table)), str(beside))


def test_if_the_system_does_not_reveal_open_files_the_path_is_resolved(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("windrow_core.files.table_paths._DESCRIPTORS", str(tmp_path / "no-such"))
    home, path = home_of(str(table)), f"{table}/ds=1/a.parquet"
    with open(open_beneath(home, path), "rb") as file:
        assert pq.read_metadata(file).num_rows == 3
    swap(table, tmp_path / "outside")

    with pytest.raises(OSError, match=OUT):
        open_beneath(home, path)


@pytest.mark.parametrize(
    ("location", "path", "absolute"),
    [
        ("/t", "ds=1/a", "/t/ds=1/a"),
        ("/t", "", "/t"),
        ("/", "a", "/a"),
        ("/t", "/other/a", "/other/a"),
        ("/t", "/tt/a", "/tt/a"),
        ("s3://b/t", "x:/a", "s3://b/t/x:/a"),
        ("s3://b/t", "s3://b/other/a", "s3://b/other/a"),
    ],
)
def test_a_path_is_relative_or_absolute_and_comes_back(
    location: str, path: str, absolute: str
) -> None:
    assert absolute_path(location, path) == absolute
    assert path_in(location, absolute) == path


@pytest.mark.parametrize("buffered", [2**20, 10])
@pytest.mark.parametrize("cached_on", [None, "here"])
def test_a_file_outside_is_read_from_no_folder_but_the_allowed_one(
    table: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    buffered: int,
    cached_on: str | None,
) -> None:
    cache = cache_in(tmp_path / "cache")
    monkeypatch.setenv("WINDROW_CACHE_DIR", str(tmp_path / "cache"))
    outside = tmp_path / "outside"
    write(outside, "a.parquet")
    group = group_of(outside)
    at = group.schema.get_field_index("path")
    group = group.set_column(at, "path", pa.array([f"{outside}/a.parquet"]))
    if cached_on is not None:
        settle()
    batches = list(read_group(spec_of(table, buffered), group, None, cached_on))
    assert sum(batch.num_rows for batch in batches) == 3
    kept = [FileKey.of(key).path for key in keys_in(cache)]
    assert kept == ([] if cached_on is None else [f"{outside}/a.parquet"])

    outside.rename(tmp_path / "moved")
    outside.symlink_to(tmp_path / "moved")
    with pytest.raises(UnreadableFileError, match=OUT):
        list(read_group(spec_of(table, buffered), group, None, None))


def test_footers_and_filters_of_files_outside_are_read_from_no_other_folder(
    table: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    write(outside, "a.parquet")
    listed = list_files(str(outside)).files
    files = listed.set_column(0, listed.schema.field(0), pa.array([f"{outside}/a.parquet"]))
    assert [len(group.table) for group in read_footers(str(table), files, executor=inline)] == [1]

    outside.rename(tmp_path / "moved")
    outside.symlink_to(tmp_path / "moved")
    with pytest.raises(UnreadableFootersError, match=OUT):
        read_footers(str(table), files, executor=inline)
    with pytest.raises(UnreadableFootersError, match=OUT):
        build_missing(
            carried_filters(["x"], pa.nulls(1, pa.int32()), None),
            str(table),
            files,
            ProgressMeter(),
            inline,
        )
