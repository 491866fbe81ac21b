"""Laws of following the metadata of Iceberg tables, over random histories of commits."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.table import Table
from pyiceberg.transforms import BucketTransform, IdentityTransform
from pyiceberg.types import StringType

from tests.support.laws import examples
from tests.support.tables.iceberg import Here, new_table
from tests.support.tables.iceberg_deletes import delete_positions
from windrow_service.iceberg import reader
from windrow_service.iceberg.paths import TableFolders
from windrow_service.iceberg.reading import KnownFiles, SnapshotFiles, read_table
from windrow_service.iceberg.scans import planned_files, planned_snapshot
from windrow_service.iceberg.state import SnapshotState

_SCHEMA = pa.schema([("id", pa.int64()), ("region", pa.string())])
_STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["append", "append", "delete", "overwrite", "positions", "column", "specs", "rollback"]
        ),
        st.integers(0, 3),
        # Which of the earlier reads the next one starts from.
        st.integers(0, 99),
    ),
    min_size=1,
    max_size=7,
)


def _rows(table: Table, first: int) -> pa.Table:
    schema = table.schema().as_arrow()
    made = {"id": [first, first + 1, first + 2], "region": ["north", "south", None]}
    return pa.table([made.get(name, ["more"] * 3) for name in schema.names], schema=schema)


def _step(table: Table, kind: str, number: int, at: int) -> None:
    first = 10 * at
    if kind == "append":
        table.append(_rows(table, first))
    elif kind == "delete":
        table.delete(f"id = {10 * number + 1}")
    elif kind == "overwrite":
        table.overwrite(_rows(table, first), overwrite_filter=f"id < {10 * number}")
    elif kind == "positions":
        files = sorted(task.file.file_path for task in table.scan().plan_files())
        # The helper does not support partitions.
        if files and table.spec().is_unpartitioned() and len(table.specs()) == 1:
            delete_positions(table, {path: [number % 3] for path in files[: number + 1]})
    elif kind == "column":
        with table.update_schema() as schema:
            schema.add_column(f"c{at}", StringType())
    elif kind == "specs" and not table.spec().fields:
        with table.update_spec() as spec:
            spec.add_field("region", IdentityTransform(), f"region_{at}")
            spec.add_field("id", BucketTransform(3), f"bucket_{at}")
    elif kind == "specs":
        with table.update_spec() as spec:
            for field in table.spec().fields:
                spec.remove_field(field.name)
    elif kind == "rollback" and table.snapshots():
        chosen = table.snapshots()[number % len(table.snapshots())]
        with table.manage_snapshots() as snapshots:
            snapshots.set_current_snapshot(snapshot_id=chosen.snapshot_id)


@contextmanager
def _table() -> Iterator[tuple[Table, str]]:
    folder = Path(tempfile.mkdtemp())
    try:
        yield new_table(folder, _SCHEMA)
    finally:
        shutil.rmtree(folder)


def _read(
    table: Table, location: str, version: int | None, known: KnownFiles | None
) -> SnapshotFiles:
    options = {"metadata": table.metadata_location}
    wanted = str(version) if version is not None else None
    return read_table(TableFolders(location, ()), options, wanted, known, Here())


def _planned_files(table: Table, location: str) -> list[pa.Table]:
    """Return what plans of scans need of each manifest of data files."""
    folders, options = TableFolders(location, ()), {"metadata": table.metadata_location}
    manifests = planned_snapshot(folders, options, None, Here()).manifests
    data = [one for one in manifests if not one.holds_deletes]
    return planned_files(folders, data, Here())


def _seen(found: SnapshotFiles) -> Mapping[str, tuple[int, list[str]]]:
    return {
        row["path"]: (row["row_count"], sorted(one["path"] for one in row["deletes"] or ()))
        for row in found.files.to_pylist()
    }


def _planned(table: Table, version: int | None) -> Mapping[str, tuple[int, list[str]]]:
    def path(file: Any) -> str:
        found: str = file.file_path
        return found.removeprefix(f"{table.location()}/")

    return {
        path(task.file): (task.file.record_count, sorted(map(path, task.delete_files)))
        for task in table.scan(snapshot_id=version).plan_files()
    }


@pytest.mark.filterwarnings("ignore:Delete operation did not match any records")
@examples(12, deadline=None)
@given(_STEPS)
def test_every_snapshot_of_every_history_has_its_files_whichever_read_it_starts_from(
    steps: list[tuple[str, int, int]],
) -> None:
    with _table() as (table, location):
        known: list[KnownFiles | None] = [None]
        for at, (kind, number, start) in enumerate(steps):
            _step(table, kind, number, at)
            table.refresh()
            found = _read(table, location, None, known[start % len(known)])
            assert _seen(found) == _planned(table, None)
            assert found.files.equals(_read(table, location, None, None).files)
            planned = _planned_files(table, location)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(reader, "_MAX_TOGETHER", 1)
                assert found.files.equals(_read(table, location, None, None).files)
                one_by_one = _planned_files(table, location)
            assert [one.to_pylist() for one in planned] == [one.to_pylist() for one in one_by_one]
            if found.state is not None:
                known.append(
                    KnownFiles(files=found.files, state=SnapshotState.of(found.state.encoded()))
                )
        for at, snapshot in enumerate(table.snapshots()):
            version = snapshot.snapshot_id
            found = _read(table, location, version, known[at % len(known)])
            assert _seen(found) == _planned(table, version)
            assert found.files.equals(_read(table, location, version, None).files)
