"""Addresses that Hadoop's settings explain are those of the file systems behind them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.servers.hadoop_settings import write_settings
from windrow_core.models import TableDefinition
from windrow_service.directories import DirectoryInventories
from windrow_service.inventory.errors import InvalidLocationError
from windrow_service.inventory.listing.locations import canonical_location
from windrow_service.usecases.tables.errors import LocationNotAllowedError

TABLES = "fs.viewfs.mounttable."
LAKE = {
    "fs.defaultFS": "hdfs://lake",
    f"{TABLES}all.link./data": "hdfs://lake/warehouse/",
    f"{TABLES}all.link./logs/of apps": "hdfs://10.0.0.1:9000/a%20b",
    f"{TABLES}all.link./s3": "s3a://bucket/tables",
    f"{TABLES}all.link./root": "hdfs://lake",
    f"{TABLES}all.link./twice": "viewfs://rest/x",
    f"{TABLES}all.link./unsaid": "hdfs:///x",
    f"{TABLES}all.link./variable": "hdfs://lake/${user.name}",
    f"{TABLES}all.link./bare": "/x",
    f"{TABLES}all.homedir": "/user",
    f"{TABLES}Rest.linkFallback": "hdfs://lake/rest",
    f"{TABLES}Rest.link./data": "hdfs://lake/warehouse",
    f"{TABLES}merged.linkMergeSlash": "hdfs://lake/",
    f"{TABLES}odd.linkRegex.^/user/(?<name>[a-z]+)": "hdfs://lake/home/${name}",
    f"{TABLES}odd.linkFallback": "hdfs://lake/rest",
    f"{TABLES}odd.link./data": "hdfs://lake/warehouse",
    f"{TABLES}default.link./data": "hdfs://lake/of default",
}


def read_by(settings: Mapping[str, str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_settings(folder / "core-site.xml", settings)
    monkeypatch.setenv("HADOOP_CONF_DIR", str(folder))


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("viewfs://all/data/sales/events/", "hdfs://lake/warehouse/sales/events"),
        ("viewfs://all/data", "hdfs://lake/warehouse"),
        ("ViewFS://all/logs/of apps/50%", "hdfs://10.0.0.1:9000/a b/50%"),
        ("viewfs://all/s3/t", "s3://bucket/tables/t"),
        ("viewfs://all/root", "hdfs://lake"),
        ("viewfs://all/root/t", "hdfs://lake/t"),
        ("viewfs://Rest/database/t", "hdfs://lake/rest/database/t"),
        ("viewfs://Rest/data/t", "hdfs://lake/warehouse/t"),
        ("viewfs://merged/t", "hdfs://lake/t"),
        ("viewfs://odd/data/t", "hdfs://lake/warehouse/t"),
        ("viewfs:///data/t", "hdfs://lake/of default/t"),
        ("hdfs:///t", "hdfs://lake/t"),
        ("hdfs://default/t", "hdfs://lake/t"),
    ],
)
def test_an_address_is_followed(
    written: str, kept: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_by(LAKE, tmp_path, monkeypatch)

    assert canonical_location(written) == kept
    assert canonical_location(kept) == kept


@pytest.mark.parametrize("written", ["viewfs:///data/t", "hdfs:///data/t", "hdfs://default/data/t"])
def test_the_default_file_system_may_be_one_of_mounts(
    written: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_by(LAKE | {"fs.defaultFS": "viewfs://all/"}, tmp_path, monkeypatch)

    assert canonical_location(written) == "hdfs://lake/warehouse/t"


@pytest.mark.parametrize(
    ("location", "words"),
    [
        ("viewfs://all", "holds mounts of other folders .*/data.*give a folder"),
        ("viewfs://all/logs", "holds mounts of other folders .*/logs/of apps"),
        ("viewfs://all/other", "no mount of 'all'.*HADOOP_CONF_DIR.*'hdfs://host:port/path'"),
        ("viewfs://all/data2", "no mount of 'all'"),
        ("viewfs://ALL/data", "no mount of 'ALL'"),
        ("viewfs://all/twice", "stands for another: give its address"),
        ("viewfs://all/unsaid", "stands for another: give its address"),
        ("viewfs://all/variable", "no address: write it out"),
        ("viewfs://all/bare", "no address: write it out"),
        ("viewfs://odd/user/eve", "not followed .linkRegex."),
        ("viewfs://all/data/../other", "segment"),
        ("viewfs://me@all/data", "user or a key"),
        ("viewfs://all/data?x", "'\\?' or '#'"),
        ("viewfs://a b/data", "no valid name"),
    ],
)
def test_an_address_that_is_not_followed_is_refused_with_the_remedy(
    location: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_by(LAKE, tmp_path, monkeypatch)

    with pytest.raises(InvalidLocationError, match=words):
        canonical_location(location)


@pytest.mark.parametrize("default", ["", "file:///", "s3a://bucket", "hdfs://default", "hdfs:///"])
def test_a_default_file_system_that_is_not_stated_is_asked_for(
    default: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_by({"fs.defaultFS": default}, tmp_path, monkeypatch)

    with pytest.raises(InvalidLocationError, match=r"set fs.defaultFS .*HADOOP_CONF_DIR"):
        canonical_location("hdfs:///t")


def test_mounts_may_be_in_a_file_of_their_own_below_hadoops_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "etc" / "hadoop"
    folder.mkdir(parents=True)
    write_settings(folder / "mounts.xml", LAKE)
    include = '<include xmlns="http://www.w3.org/2001/XInclude" href="mounts.xml"/>'
    (folder / "core-site.xml").write_text(f"<configuration>{include}</configuration>")
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    monkeypatch.setenv("HADOOP_HOME", str(tmp_path))

    assert canonical_location("viewfs://all/data/t") == "hdfs://lake/warehouse/t"


def test_settings_that_cannot_be_read_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "core-site.xml").write_text("<configuration>")
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))

    with pytest.raises(InvalidLocationError, match=f"{tmp_path}.*correct the file"):
        canonical_location("viewfs://all/data/t")


def test_a_mount_does_not_lead_out_of_the_allowed_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_by(LAKE, tmp_path, monkeypatch)
    of_mounts = DirectoryInventories(("viewfs://all/data/sales", "viewfs://Rest/open"))
    of_targets = DirectoryInventories(("hdfs://lake/warehouse/sales", "hdfs://lake/rest/open"))

    for inventories in (of_mounts, of_targets):
        for location in ("viewfs://all/data/sales/t", "viewfs://Rest/data/sales/t"):
            definition = TableDefinition(location=location, format="parquet")
            assert inventories.locate(definition) == "hdfs://lake/warehouse/sales/t"
        assert inventories.allowed(["viewfs://Rest/open/p"]) == ["hdfs://lake/rest/open/p"]
        for location in ("viewfs://all/data/hr", "viewfs://all/root/warehouse/sale", "hdfs:///t"):
            with pytest.raises(LocationNotAllowedError):
                inventories.allowed([location])
