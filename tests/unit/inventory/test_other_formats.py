"""A folder of another table format is refused by name, as is any folder within it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.tables.first_inventories import first_request
from tests.unit.inventory.files import as_previous, take_inline, write
from windrow_core.files.errors import LocationError
from windrow_core.files.parent_folders import refuse_part_of_table
from windrow_core.models import TableDefinition
from windrow_service.directories import DirectoryInventories

DATA = "ds=1/part-0.parquet"

# Paths in the table's folder, and the name of their format in the refusal.
FORMATS = {
    "delta": (["_delta_log/00000000000000000000.json", DATA], "a Delta table"),
    "hudi": ([".hoodie/hoodie.properties", DATA], "a Hudi table"),
    "hudi partition": (["ds=1/.hoodie_partition_metadata", DATA], "a Hudi table"),
    "hudi partition in parquet": (["ds=1/.hoodie_partition_metadata.parquet", DATA], "a Hudi"),
    "iceberg": (["metadata/v1.metadata.json", "data/ds=1/a.parquet"], "an Iceberg table"),
    "iceberg, packed": (["metadata/00000-5f.gz.metadata.json", "data/a.parquet"], "an Iceberg"),
    "paimon": (["schema/schema-0", "bucket-0/a.parquet"], "a Paimon table"),
    "acid base": (["base_0000002/bucket_00000"], "a Hive ACID table"),
    "acid delta": (["delta_0000001_0000001_0000/bucket_00000"], "a Hive ACID table"),
    "acid delta of Hive 2": (["ds=1/delta_0000001_0000001/bucket_00000"], "a Hive ACID table"),
    "acid deletes": (["delete_delta_0000002_0000002_0000/b", DATA], "a Hive ACID table"),
    "acid, compacted": (["ds=1/base_0000005_v0000021/bucket_00000"], "a Hive ACID table"),
    "below": (["ds=1/_delta_log/0.json", DATA], "a Delta table"),
    "sink below": (["ds=1/_spark_metadata/0", DATA], "output of a Spark streaming query"),
}

# A sign of the format, the table's location below the same folder, and the format's name.
PARTS = {
    "partition of delta": ("_delta_log/0.json", "ds=1", "a Delta table"),
    "folders below delta": ("_delta_log/0.json", "ds=1/h=2", "a Delta table"),
    "delta's log": ("_delta_log/0.json", "_delta_log", "a Delta table"),
    "partition of hudi": (".hoodie/hoodie.properties", "ds=1", "a Hudi table"),
    "data of iceberg": ("metadata/v3.metadata.json", "data", "an Iceberg table"),
    "partition of iceberg": ("metadata/v3.metadata.json", "data/ds=1", "an Iceberg table"),
    "bucket of paimon": ("schema/schema-0", "bucket-0", "a Paimon table"),
    "partition of a sink": ("_spark_metadata/0", "ds=1", "output of a Spark streaming query"),
    "acid base": ("other", "ds=1/base_0000005", "a Hive ACID table"),
    "acid delta": ("other", "ds=1/delta_0000005_0000005_0000", "a Hive ACID table"),
}


def put(location: Path, *paths: str) -> None:
    for path in paths:
        (location / path).parent.mkdir(parents=True, exist_ok=True)
        (location / path).write_bytes(b"{}")


@pytest.mark.parametrize("name", FORMATS)
def test_a_table_of_another_format_is_refused_with_the_remedy(tmp_path: Path, name: str) -> None:
    paths, words = FORMATS[name]
    put(tmp_path, *paths)

    with pytest.raises(LocationError, match=f"is (part of |the )?{words}") as caught:
        take_inline(str(tmp_path))

    assert "register" in caught.value.reason


@pytest.mark.parametrize("name", PARTS)
def test_a_part_of_a_table_of_another_format_is_refused(tmp_path: Path, name: str) -> None:
    sign, below, words = PARTS[name]
    table = tmp_path / "warehouse/t"
    put(table, sign, f"{below}/part-0.parquet")
    inventories = DirectoryInventories((str(tmp_path),))
    definition = TableDefinition(location=str(table / below))

    with pytest.raises(LocationError, match=words) as caught:
        inventories.take(first_request(definition))

    assert caught.value.folder == str(table / below)
    assert "register" in caught.value.reason


def test_parent_folders_are_examined_as_far_as_tables_are_allowed(tmp_path: Path) -> None:
    put(tmp_path, "_delta_log/0.json", "allowed/t/ds=1/part-0.parquet")
    location = str(tmp_path / "allowed/t")

    refuse_part_of_table(location, str(tmp_path / "allowed"))

    with pytest.raises(LocationError, match="lies in a Delta table"):
        refuse_part_of_table(location, str(tmp_path))


def test_a_parent_folder_that_cannot_be_listed_is_ignored(tmp_path: Path) -> None:
    put(tmp_path, "t/part-0.parquet")
    (tmp_path / "_delta_log").write_bytes(b"no folder")

    refuse_part_of_table(str(tmp_path / "t"))


@pytest.mark.parametrize(
    "path",
    [
        "base_2/ds=1/a.parquet",
        "metadata/ds=1/a.parquet",
        "schema/ds=1/a.parquet",
        "t/base_1=2/a.parquet",
    ],
)
def test_plain_tables_with_such_names_are_accepted(tmp_path: Path, path: str) -> None:
    write(tmp_path, path)
    location = str(tmp_path / path.split("/")[0])

    refuse_part_of_table(location)

    assert len(take_inline(location).files) == 1


def test_a_table_that_becomes_another_format_is_refused_by_the_next_refresh(tmp_path: Path) -> None:
    write(tmp_path, DATA)
    ahead_ns = 10**18 * 3
    first = take_inline(str(tmp_path), clock_ns=lambda: ahead_ns)
    put(tmp_path, "_delta_log/0.json")

    with pytest.raises(LocationError, match="is a Delta table"):
        take_inline(str(tmp_path), previous=as_previous(first), clock_ns=lambda: ahead_ns)
