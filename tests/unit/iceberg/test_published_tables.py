"""Tables that the tests of Impala and Iceberg read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.tables.iceberg import Here, planned_by_pyiceberg, published_table
from windrow_service.iceberg.errors import IcebergMetadataError
from windrow_service.iceberg.paths import TableFolders
from windrow_service.iceberg.reading import SnapshotFiles, read_table


def _read(table: Path) -> SnapshotFiles:
    return read_table(TableFolders(str(table), ()), {}, None, None, Here())


@pytest.mark.parametrize(
    "name",
    [
        "iceberg_alltypes_part",
        "iceberg_legacy_partition_schema_evolution",
        "iceberg_migrated_alter_test",
        "iceberg_migrated_complex_test",
        "iceberg_spark_compaction_with_dangling_delete",
        "iceberg_timestamptz_part",
        "iceberg_v2_delete_positional",
        "iceberg_v2_null_delete_record",
        "iceberg_v2_partitioned_position_deletes",
        "iceberg_v2_positional_not_all_data_files_have_delete_files",
        "iceberg_v3_default_value",
        "iceberg_v3_row_lineage",
        "test_complex_default",
        "test_default_part",
    ],
)
def test_files_and_their_delete_files_are_those_that_pyiceberg_plans(
    name: str, tmp_path: Path
) -> None:
    table = published_table(name, tmp_path)

    found = {
        one["path"]: (one["row_count"], sorted(each["path"] for each in one["deletes"] or ()))
        for one in _read(table).files.to_pylist()
    }

    assert found == planned_by_pyiceberg(table)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("iceberg_v2_delete_equality", "rows deleted by equality"),
        ("iceberg_v2_no_deletes_orc", "of format ORC"),
        ("iceberg_with_key_metadata", "is encrypted"),
        ("trino_variant", "'variant'"),
    ],
)
def test_unsupported_tables_are_refused_by_name(name: str, reason: str, tmp_path: Path) -> None:
    table = published_table(name, tmp_path)

    with pytest.raises(IcebergMetadataError, match=reason):
        _read(table)


def test_a_deletion_vector_is_the_bitmap_in_its_blob_and_applies_to_its_data_file_alone(
    tmp_path: Path,
) -> None:
    table = published_table("iceberg_v3_deletion_vectors", tmp_path)

    deletes = [one for one in _read(table).files["deletes"].to_pylist() if one is not None]

    # PyIceberg ignores which data file a vector belongs to.
    assert len(deletes) == 2
    for (vector,) in deletes:
        bitmap = (table / vector["path"]).read_bytes()[vector["offset"] :][: vector["length"]]
        assert vector["kind"] == "vector"
        assert int.from_bytes(bitmap[:4], "little") == 1681511377
        assert int.from_bytes(bitmap[4:12], "little") == 1


def test_columns_of_a_migrated_table_are_found_by_the_names_of_its_mapping(tmp_path: Path) -> None:
    table = published_table("iceberg_migrated_alter_test", tmp_path)

    metadata = {field.name: field.metadata for field in _read(table).data_schema}

    assert all(b"windrow:names" in one and b"PARQUET:field_id" in one for one in metadata.values())


def test_columns_carry_their_initial_defaults(tmp_path: Path) -> None:
    table = published_table("iceberg_v3_default_value", tmp_path)

    defaults = [
        (field.metadata or {}).get(b"windrow:default") for field in _read(table).data_schema
    ]

    assert any(one is not None for one in defaults)
