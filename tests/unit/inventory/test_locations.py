"""A location has one spelling, and lies under a prefix or does not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from windrow_core.files.schemes import is_remote
from windrow_service.inventory.errors import InvalidLocationError
from windrow_service.inventory.listing.locations import canonical_location, lies_under


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("s3://bucket/tables/events/", "s3://bucket/tables/events"),
        ("s3a://bucket/a%20b", "s3://bucket/a%20b"),
        ("S3://bucket", "s3://bucket"),
        ("gs://bucket_1/t", "gs://bucket_1/t"),
        ("hdfs://Namenode:8020/t", "hdfs://namenode:8020/t"),
        ("abfs://lake@acc.dfs.core.windows.net/t", "abfss://lake@acc.dfs.core.windows.net/t"),
        ("abfss://a-1@acc1.dfs.core.windows.net", "abfss://a-1@acc1.dfs.core.windows.net"),
        ("file:///no/such", "/no/such"),
        ("/no/../such/.", "/such"),
    ],
)
def test_a_location_is_stored_in_one_spelling(written: str, kept: str) -> None:
    assert canonical_location(written) == kept
    assert canonical_location(kept) == kept
    assert is_remote(kept) is ("://" in kept)


@pytest.mark.parametrize(
    ("location", "word"),
    [
        ("s3://bucket/a/../b", "segment"),
        ("s3://bucket/a//b", "segment"),
        ("s3://bucket/./b", "segment"),
        ("s3:bucket/t", "begin it with 's3://'"),
        ("s3:///t", "bucket"),
        ("s3://BUCKET/t", "bucket"),
        ("s3://bucket/t#x", "'#'"),
        ("gs://b%40/t", "bucket"),
        ("hdfs://", "names nothing"),
        ("abfss://lake/t", "'abfss://container@account"),
        ("abfss://acc.dfs.core.windows.net/lake", "'abfss://container@account"),
        ("abfss://lake@acc.dfs.core.windows.net/a//b", "segment"),
        ("hdfs://host:port/t", "host"),
        ("ftp://host/t", "ftp: is not supported"),
        ("t", "not absolute"),
        ("s3://bucket/\0", "control"),
    ],
)
def test_an_invalid_location_is_refused_with_the_remedy(location: str, word: str) -> None:
    with pytest.raises(InvalidLocationError, match=word):
        canonical_location(location)


@pytest.mark.parametrize(
    "location",
    [
        "s3://AKIA:hush@bucket/t",
        "s3://bucket/t?secret_key=hush",
        "gs://hush@bucket",
        "abfss://lake:hush@acc.dfs.core.windows.net/t",
        "abfss://lake@acc.dfs.core.windows.net/t?sig=hush",
        "ftp://u:hush@h/",
    ],
)
def test_a_secret_in_a_location_is_refused_and_not_repeated(location: str) -> None:
    with pytest.raises(InvalidLocationError) as caught:
        canonical_location(location)

    assert "hush" not in str(caught.value)


@pytest.mark.parametrize(
    ("location", "prefix", "under"),
    [
        ("s3://b/tab", "s3://b/tab", True),
        ("s3://b/tab/x", "s3://b/tab", True),
        ("s3://b/table2", "s3://b/tab", False),
        ("s3://b/tab", "s3://b", True),
        ("s3://b2/tab", "s3://b", False),
        ("hdfs://other/t", "hdfs://lake/t", False),
        ("/data/t", "/", True),
        ("s3://b/tab", "/", False),
        ("/data2", "/data", False),
    ],
)
def test_locations_are_matched_by_whole_path_segments(
    location: str, prefix: str, under: bool
) -> None:
    assert lies_under(location, prefix) is under


def test_links_of_a_local_location_are_resolved(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")

    assert canonical_location(f"file:{tmp_path}/link/x/..") == str(tmp_path / "real")


@pytest.mark.parametrize("character", ["\0", "\n", "\r", "\x1b", "\x7f", "\x85", "\x9f"])
@pytest.mark.parametrize("before", ["/data/a", "file:///data/a", "s3://bucket/a", "hdfs://h/a"])
def test_a_control_character_is_refused(before: str, character: str) -> None:
    with pytest.raises(InvalidLocationError, match="contains a control character") as caught:
        canonical_location(f"{before}{character}b")

    assert character not in str(caught.value)


@pytest.mark.parametrize("name", [b"a\nb", b"a\xffb"])
def test_a_link_to_a_folder_with_such_a_name_is_refused(tmp_path: Path, name: bytes) -> None:
    target = os.path.join(os.fsencode(tmp_path), name)
    os.mkdir(target)
    os.symlink(target, tmp_path / "link")

    with pytest.raises(InvalidLocationError, match="rename it"):
        canonical_location(f"{tmp_path}/link")
