"""What a refresh finds in the metadata of tables that PyIceberg writes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.table import Table
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    IdentityTransform,
    TruncateTransform,
    YearTransform,
)
from pyiceberg.types import DoubleType, LongType

from tests.support.tables.iceberg import Here, new_table
from tests.support.tables.iceberg_deletes import delete_positions
from windrow_core.files.errors import DuplicateColumnError
from windrow_service.iceberg.errors import IcebergMetadataError, IcebergVersionError
from windrow_service.iceberg.paths import TableFolders
from windrow_service.iceberg.reading import KnownFiles, SnapshotFiles, read_table
from windrow_service.iceberg.state import SnapshotState

SCHEMA = pa.schema(
    [
        ("id", pa.int32()),
        ("name", pa.string()),
        ("x", pa.float32()),
        ("at", pa.timestamp("us")),
        ("region", pa.string()),
    ]
)


def _rows(ids: Sequence[int], region: str = "north", schema: pa.Schema = SCHEMA) -> pa.Table:
    columns: dict[str, Any] = {
        "id": ids,
        "name": [f"name {one}" for one in ids],
        "x": [one / 2 for one in ids],
        "at": [datetime.fromisoformat(f"2024-01-{1 + one % 28:02}") for one in ids],
        "region": [region] * len(ids),
    }
    return pa.table({name: columns[name] for name in schema.names}, schema=schema)


def _read(
    location: str, version: str | None = None, known: KnownFiles | None = None
) -> SnapshotFiles:
    options = {"metadata": _newest(location)}
    return read_table(TableFolders(location, ()), options, version, known, Here())


def _newest(location: str) -> str:
    return str(max(Path(location, "metadata").glob("*.metadata.json")))


def _known(found: SnapshotFiles) -> KnownFiles:
    assert found.state is not None
    return KnownFiles(files=found.files, state=SnapshotState.of(found.state.encoded()))


def _planned(table: Table, snapshot_id: int | None = None) -> set[str]:
    prefix = table.location() + "/"
    tasks = table.scan(snapshot_id=snapshot_id).plan_files()
    return {task.file.file_path.removeprefix(prefix) for task in tasks}


def _bounds(found: SnapshotFiles, column: str) -> list[tuple[Any, Any, Any]]:
    stats = (one[column] for one in found.files["stats"].to_pylist())
    return [(one["min"], one["max"], one["null_count"]) for one in stats]


def test_a_refresh_reads_only_manifests_that_are_new(tmp_path: Path) -> None:
    table, location = new_table(tmp_path, SCHEMA)
    table.append(_rows([1, 2]))
    table.append(_rows([3, 4]))
    before = _read(location)
    table.append(_rows([5]))

    found = _read(location, known=_known(before))

    assert (before.manifests_read, found.manifests_read) == (2, 1)
    assert found.files.equals(_read(location).files)


@pytest.mark.slow
def test_any_snapshot_is_reached_from_any_other(tmp_path: Path) -> None:
    table, location = new_table(tmp_path, SCHEMA)
    with table.update_spec() as spec:
        spec.add_field("region", IdentityTransform())
    table.append(_rows([1, 2, 3]))
    table.append(_rows([4, 5, 6], "south"))
    table.delete("id = 2")
    table.overwrite(_rows([7], "south"), overwrite_filter="region = 'south'")
    table.append(_rows([8]))
    ids = [one.snapshot_id for one in table.snapshots()]
    reads = {one: _read(location, str(one)) for one in ids}

    for start in ids:
        for end in ids:
            found = _read(location, str(end), known=_known(reads[start]))
            assert found.files.equals(reads[end].files)
            assert set(found.files["path"].to_pylist()) == _planned(table, end)


def test_a_snapshot_whose_predecessor_was_expired_is_reached(tmp_path: Path) -> None:
    table, location = new_table(tmp_path, SCHEMA)
    table.append(_rows([1]))
    before = _read(location)
    table.append(_rows([2]))
    table.maintenance.expire_snapshots().by_id(table.snapshots()[0].snapshot_id).commit()
    Path(str(table.snapshots()[0].manifest_list)).unlink(missing_ok=True)

    found = _read(location, known=_known(before))

    assert set(found.files["path"].to_pylist()) == _planned(table)
    # Only the earlier read knows when the first file was added.
    assert 0 not in found.files["mtime_ns"].to_pylist()


def test_statistics_belong_to_columns_by_their_ids(tmp_path: Path) -> None:
    table, location = new_table(tmp_path, SCHEMA)
    table.append(_rows([1, 2]))
    with table.update_schema() as schema:
        schema.update_column("id", LongType())
        schema.update_column("x", DoubleType())
        schema.rename_column("name", "title")
        schema.delete_column("region")
    with table.update_schema() as schema:
        schema.add_column("region", LongType())
    table.refresh()

    found = _read(location)

    assert found.data_schema.types[:3] == [pa.int64(), pa.string(), pa.float64()]
    assert _bounds(found, "id") == [(1, 2, 0)]
    assert _bounds(found, "x") == [(0.5, 1.0, 0)]
    assert _bounds(found, "title") == [("name 1", "name 2", 0)]
    # Not the column that had this name before.
    assert _bounds(found, "region") == [(None, None, None)]


def test_truncated_bounds_still_bound_long_texts(tmp_path: Path) -> None:
    table, location = new_table(tmp_path, pa.schema([("s", pa.string())]))
    values = ["a" * 40, "\U0010ffff" * 40]
    table.append(pa.table({"s": values}))

    ((least, most, _),) = _bounds(_read(location), "s")

    assert least == "a" * 16
    assert most is None or most.encode() >= values[1].encode()


def test_columns_that_partition_all_files_by_their_values_are_partition_columns(
    tmp_path: Path,
) -> None:
    table, location = new_table(tmp_path, SCHEMA)
    with table.update_spec() as spec:
        spec.add_field("region", IdentityTransform())
        spec.add_field("at", DayTransform())
    table.append(_rows([1], "north"))
    table.append(_rows([2], "a/b=c %"))

    found = _read(location)

    assert found.partition_schema.names == ["region"]
    assert found.data_schema.names == ["id", "name", "x", "at"]
    assert {one["region"] for one in found.files["partition"].to_pylist()} == {"north", "a/b=c %"}


def test_a_column_that_partitions_only_some_files_stays_a_column_of_the_files(
    tmp_path: Path,
) -> None:
    table, location = new_table(tmp_path, SCHEMA)
    table.append(_rows([1], "north"))
    with table.update_spec() as spec:
        spec.add_field("region", IdentityTransform())
    table.append(_rows([2], "south"))

    found = _read(location)

    assert found.partition_schema.names == []
    assert sorted(_bounds(found, "region")) == [("north", "north", 0), ("south", "south", 0)]


def test_partitions_bound_columns_without_statistics(tmp_path: Path) -> None:
    schema = pa.schema(
        [("day", pa.timestamp("us")), ("year", pa.date32()), ("n", pa.int64()), ("s", pa.string())]
    )
    metrics = {"write.metadata.metrics.default": "none"}
    table, location = new_table(tmp_path, schema, **metrics)
    with table.update_spec() as spec:
        spec.add_field("day", DayTransform())
        spec.add_field("year", YearTransform())
        spec.add_field("n", TruncateTransform(10))
        spec.add_field("s", TruncateTransform(2))
    table.append(
        pa.table(
            {
                "day": [datetime.fromisoformat("2024-02-29T05:00")],
                "year": [date(2023, 7, 1)],
                "n": [-5],
                "s": ["xyz"],
            },
            schema=schema,
        )
    )

    found = _read(location)

    ends = ("2024-02-29", "2024-02-29T23:59:59.999999")
    days = (*map(datetime.fromisoformat, ends), None)
    assert _bounds(found, "day") == [days]
    assert _bounds(found, "year") == [(date(2023, 1, 1), date(2023, 12, 31), None)]
    assert _bounds(found, "n") == [(-10, -1, None)]
    assert _bounds(found, "s") == [("xy", None, None)]


def test_tables_with_buckets_or_evolved_partitions_have_all_their_files(tmp_path: Path) -> None:
    table, location = new_table(tmp_path, SCHEMA)
    with table.update_spec() as spec:
        spec.add_field("id", BucketTransform(4), "buckets")
    table.append(_rows(range(20)))
    with table.update_spec() as spec:
        spec.remove_field("buckets")
        spec.add_field("region", IdentityTransform())
    table.append(_rows([100]))

    assert set(_read(location).files["path"].to_pylist()) == _planned(table)


def test_branches_and_tags_are_read_by_their_names(tmp_path: Path) -> None:
    table, location = new_table(tmp_path, SCHEMA)
    table.append(_rows([1]))
    first = table.current_snapshot()
    assert first is not None
    with table.manage_snapshots() as refs:
        refs.create_tag(first.snapshot_id, "nightly")
        refs.create_branch(first.snapshot_id, "audit")
    table.append(_rows([2]), branch="audit")
    with table.update_schema() as schema:
        schema.add_column("more", LongType())

    assert len(_read(location).files) == 1
    assert len(_read(location, "audit").files) == 2
    assert "more" in _read(location).data_schema.names
    # A tag keeps the columns of its time.
    assert "more" not in _read(location, "nightly").data_schema.names
    assert "more" in _read(location, "audit").data_schema.names


def test_an_unknown_version_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    table, location = new_table(tmp_path, SCHEMA)
    table.append(_rows([1]))

    with pytest.raises(IcebergVersionError, match=r"'nightly': it has main, [0-9]+"):
        _read(location, "nightly")


def test_a_table_without_a_snapshot_is_empty_and_has_its_columns(tmp_path: Path) -> None:
    _, location = new_table(tmp_path, SCHEMA)

    found = _read(location)

    assert (len(found.files), found.data_schema.names) == (0, SCHEMA.names)


def test_a_file_that_is_added_twice_is_refused(tmp_path: Path) -> None:
    table, location = new_table(tmp_path, SCHEMA)
    table.append(_rows([1]))
    path = table.location() + "/" + next(iter(_planned(table)))
    table.add_files([path], check_duplicate_files=False)

    with pytest.raises(IcebergMetadataError, match=r"twice"):
        _read(location)


@pytest.mark.parametrize(
    "columns",
    [
        [("a", pa.int64()), ("A", pa.int64())],
        [("s", pa.list_(pa.struct([("a", pa.int64()), ("A", pa.int64())])))],
    ],
)
def test_names_that_differ_by_case_only_are_refused(columns: Any, tmp_path: Path) -> None:
    _, location = new_table(tmp_path, pa.schema(columns))

    with pytest.raises(DuplicateColumnError):
        _read(location)


def test_a_file_outside_the_location_needs_an_allowed_folder(tmp_path: Path) -> None:
    table, location = new_table(tmp_path, SCHEMA)
    table.append(_rows([1]))
    outside, _ = new_table(tmp_path / "other", SCHEMA, "u")
    outside.append(_rows([2]))
    path = outside.location() + "/" + next(iter(_planned(outside)))
    table.add_files([path])
    options = {"metadata": _newest(location)}

    with pytest.raises(IcebergMetadataError, match="may read"):
        read_table(TableFolders(location, ()), options, None, None, Here())

    folders = TableFolders(location, (str(tmp_path / "other"),))
    paths = read_table(folders, options, None, None, Here()).files["path"].to_pylist()
    assert path.removeprefix("file://") in paths


def test_delete_files_that_name_data_files_by_a_link_are_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    table, location = new_table(tmp_path / "link", SCHEMA)
    table.append(_rows([1, 2, 3]))
    real = str(Path(location).resolve())
    assert len(_read(real).files) == 1

    (path,) = (task.file.file_path for task in table.scan().plan_files())
    delete_positions(table, {path: [0]})

    with pytest.raises(IcebergMetadataError, match="leads elsewhere"):
        _read(real)


def test_delete_files_apply_only_to_earlier_files(tmp_path: Path) -> None:
    table, location = new_table(tmp_path, SCHEMA)
    table.append(_rows([1, 2, 3]))
    table.append(_rows([4, 5, 6]))
    first, second = sorted(task.file.file_path for task in table.scan().plan_files())
    known = _known(_read(location))
    delete_positions(table, {first: [0], second: [1]})
    delete_positions(table, {second: [0]})
    table.append(_rows([7]))

    found = _read(location, known=known)

    assert found.files.equals(_read(location).files)
    # Known delete files do not apply to an earlier snapshot either.
    before = _read(location, str(table.snapshots()[0].snapshot_id), known=_known(found))
    assert before.files["delete_count"].to_pylist() == [0]
    assert before.files["deletes"].to_pylist() == [None]
    columns = (found.files[name].to_pylist() for name in ("path", "delete_count"))
    counts = dict(zip(*columns, strict=True))
    prefix = table.location() + "/"
    assert counts.pop(first.removeprefix(prefix)) == 1
    assert counts.pop(second.removeprefix(prefix)) == 2
    assert list(counts.values()) == [0]
