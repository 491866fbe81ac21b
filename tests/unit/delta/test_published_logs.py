"""Published Delta tables, compared with deltalake at each version."""

from __future__ import annotations

import base64
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError
from pyroaring import BitMap64

from tests.support.tables.delta_tables import PUBLISHED
from windrow_service.delta.errors import DeltaLogError, DeltaVersionError
from windrow_service.delta.reading import LoggedTable, Read, in_path_order, read_since, read_version

_TABLES = sorted(path.name for path in PUBLISHED.iterdir() if path.is_dir())
_MAGIC_BYTES = 4


def _table(name: str) -> LoggedTable:
    return LoggedTable(location=str(PUBLISHED / name), time_zone="UTC")


def _versions(name: str) -> dict[int, Read | None]:
    newest = read_version(_table(name), None).state.version
    found: dict[int, Read | None] = {}
    for version in range(newest + 1):
        try:
            read = read_version(_table(name), version)
            found[version] = replace(read, files=in_path_order(name, read.files))
        except (DeltaVersionError, DeltaLogError):
            found[version] = None
    return found


@pytest.mark.parametrize("name", _TABLES)
def test_each_version_has_the_files_and_deleted_rows_that_deltalake_sees(name: str) -> None:
    compared = 0
    for version, read in _versions(name).items():
        try:
            theirs = DeltaTable(PUBLISHED / name, version=version)
            added = pa.table(theirs.get_add_actions())
        except (DeltaError, TableNotFoundError):
            assert read is None
            continue
        assert read is not None
        assert read.files["path"].to_pylist() == sorted(map(unquote, added["path"].to_pylist()))
        assert {*read.shape.data.names, *read.shape.partition.names} == {
            one.name for one in theirs.schema().fields
        }
        assert _deleted(PUBLISHED / name, read) == _deleted_there(theirs)
        compared += 1
    assert compared


def _deleted_there(table: DeltaTable) -> dict[str, list[int]]:
    if "deletionVectors" not in (table.protocol().reader_features or ()):
        return {}
    return {
        Path(row["filepath"]).name: [
            at for at, kept in enumerate(row["selection_vector"]) if not kept
        ]
        for row in pa.table(table.deletion_vectors().read_all()).to_pylist()
    }


def _deleted(folder: Path, read: Read) -> dict[str, list[int]]:
    found = {}
    for row in read.files.select(["path", "deletes", "delete_count", "delete_bytes"]).to_pylist():
        assert (row["deletes"] is None) == (row["delete_count"] == 0)
        for one in row["deletes"] or []:
            if one["inline"] is None:
                content = (folder / one["path"]).read_bytes()[one["offset"] :][: one["length"]]
            else:
                content = base64.b64decode(one["inline"])
            assert len(content) == one["length"] == row["delete_bytes"]
            positions = list(BitMap64.deserialize(content[_MAGIC_BYTES:]))
            assert one["row_count"] == len(positions)
            found[Path(row["path"]).name] = positions
    return found


@pytest.mark.parametrize("name", _TABLES)
def test_following_the_log_gives_the_same_as_reading_it_anew(name: str) -> None:
    versions = _versions(name)
    newest = versions[max(versions)]
    assert newest is not None
    for read in versions.values():
        change = read_since(_table(name), read.state) if read is not None else None
        if read is None or change is None:
            continue
        gone = pa.concat_arrays([change.removed, *change.files["path"].chunks])
        kept = read.files.filter(pc.invert(pc.is_in(read.files["path"], gone)))
        after = in_path_order(name, pa.concat_tables([kept, change.files]))
        assert after.equals(newest.files)
        assert change.state == newest.state
        assert change.committed_ms == newest.committed_ms


@pytest.mark.parametrize("name", _TABLES)
def test_bounds_in_the_log_hold_for_the_rows_of_files(name: str) -> None:
    read = read_version(_table(name), None)
    for row in read.files.select(["path", "row_count", "stats"]).to_pylist():
        path = PUBLISHED / name / row["path"]
        if not path.exists():
            continue
        rows = pq.read_table(path, partitioning=None, coerce_int96_timestamp_unit="us")
        assert row["row_count"] in (None, len(rows))
        for one in read.shape.data:
            held, bounds = read.shape.log_names[one.name], row["stats"].get(one.name)
            if bounds is None or held not in rows.column_names:
                continue
            values = rows[held].cast(one.type, safe=False)
            assert bounds["null_count"] in (None, values.null_count)
            span = pc.min_max(values).as_py()
            if span["min"] is not None:
                assert bounds["min"] is None or bounds["min"] <= span["min"]
                assert bounds["max"] is None or bounds["max"] >= span["max"]
