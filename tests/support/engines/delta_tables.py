"""Delta tables that engines are asked to read through the catalog."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from tests.support.tables.delta_tables import (
    DeltaLog,
    column,
    inline_vector,
    metadata,
    protocol,
    write_vectors,
)

_NUMBERS = pa.table({"v": [1, 2, 3, 4]})
_ID = "PARQUET:field_id"


def partitioned(folder: Path, odd: str) -> None:
    """Write a table of dates, numbers and texts, with an added column and deleted rows."""
    first = {
        "ds": [date(2026, 11, 1), None, date(1500, 2, 3), date(2026, 11, 1)],
        "n": pa.array([1, 2, None, 1], pa.int32()),
        "c": [odd, None, "x", odd],
        "id": [1, 2, 3, 4],
    }
    by = ["ds", "n", "c"]
    write_deltalake(folder, pa.table(first), partition_by=by)
    second = {
        "ds": [date(2026, 11, 2)],
        "n": pa.array([-7], pa.int32()),
        "c": ["#?*"],
        "id": [2**40],
        "more": [0.5],
    }
    write_deltalake(folder, pa.table(second), mode="append", schema_mode="merge", partition_by=by)
    DeltaTable(folder).delete("id = 4")
    DeltaTable(folder).create_checkpoint()


def elsewhere(folder: Path) -> None:
    """Write a table whose log names a file beside its folder, and not what is in its names."""
    log = DeltaLog(folder)
    near = log.write_file("p=wrong/near", _NUMBERS.slice(0, 2), partitionValues={"p": "a/b"})
    far = DeltaLog(folder.with_name(f"{folder.name}_far"))
    there = far.write_file("far", _NUMBERS.slice(2), partitionValues={"p": None})
    there["add"]["path"] = (far.folder / "far").as_uri()
    del near["add"]["stats"]
    columns = [column("v", "long"), column("p", "string")]
    log.commit(protocol(), metadata(columns, ["p"]), near, there)


def with_vectors(folder: Path) -> None:
    """Write a table with deletion vectors: of one file, in the log, of no row, and of all rows."""
    log = DeltaLog(folder)
    far, near, none, every = write_vectors(folder, [[1, 3], [0], [], range(4)], "ab")
    vectors = [far, None, inline_vector([2]), near, none, every]
    files = [
        log.write_file(
            f"p=x/{number}",
            _NUMBERS,
            partitionValues={"p": "x" if number % 2 else None},
            **({} if vector is None else {"deletionVector": vector}),
        )
        for number, vector in enumerate(vectors)
    ]
    columns = [column("v", "long"), column("p", "string")]
    log.commit(protocol(3, "deletionVectors"), metadata(columns, ["p"]), *files)


def mapped(folder: Path, mode: str) -> None:
    """Write a table with column mapping, of files with and without ids.

    It was mapped when it had files already; then the columns `v` and `w` swapped names, `x` was
    dropped, another column got its name, and the partition column was renamed.
    """
    log = DeltaLog(folder)
    files = [
        log.write_file(
            str(number),
            _in_files(number, names, ids),
            partitionValues={"p": None if number == 3 else str(number)},
        )
        for number, names, ids in (
            (1, "vwx", None),
            (2, "vwx", (1, 2, 3)),
            (3, ("v", "w", "col-5"), (1, 2, 5)),
        )
    ]
    columns = [
        _mapped("w", "long", 1, "v"),
        _mapped("v", "long", 2, "w"),
        _mapped("x", "string", 5, "col-5"),
        _mapped("q", "integer", 4, "p"),
    ]
    mapping = {"delta.columnMapping.mode": mode}
    log.commit(protocol(2), metadata(columns, ["q"], mapping), *files)


def _in_files(number: int, names: Sequence[str], ids: Sequence[int] | None) -> pa.Table:
    types = (pa.int64(), pa.int64(), pa.string())
    fields = [
        pa.field(name, type_, metadata=None if ids is None else {_ID: str(ids[at])})
        for at, (name, type_) in enumerate(zip(names, types, strict=True))
    ]
    return pa.table([[number], [number + 100], [f"x{number}"]], pa.schema(fields))


def mapped_structs(folder: Path) -> None:
    """Write a table with column mapping, whose files have ids within structs."""
    inner = pa.struct(
        [
            pa.field("a", pa.int64(), metadata={_ID: "2"}),
            pa.field("col-3", pa.string(), metadata={_ID: "3"}),
        ]
    )
    rows = pa.table(
        [pa.array([{"a": 1, "col-3": "x"}, None], inner)],
        pa.schema([pa.field("s", inner, metadata={_ID: "1"})]),
    )
    struct = [_mapped("b", "long", 2, "a"), _mapped("a", "string", 3, "col-3")]
    _commit(
        DeltaLog(folder),
        rows,
        _mapped("v", {"type": "struct", "fields": struct}, 1, "s"),
        ("columnMapping",),
        {"delta.columnMapping.mode": "name"},
    )


def mapped_otherwise(folder: Path) -> None:
    """Write a table with column mapping, whose file has another id for the column."""
    field = pa.field("col-1", pa.int64(), metadata={_ID: "2"})
    _commit(
        DeltaLog(folder),
        pa.table([[1]], pa.schema([field])),
        _mapped("v", "long", 1, "col-1"),
        ("columnMapping",),
        {"delta.columnMapping.mode": "name"},
    )


def _mapped(name: str, type_: Any, number: int, physical: str) -> dict[str, Any]:
    metadata = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": physical}
    return column(name, type_, **metadata)


def widened(folder: Path) -> None:
    """Write a table of doubles, whose file still holds whole numbers."""
    rows = pa.table({"v": pa.array([1], pa.int32())})
    _commit(DeltaLog(folder), rows, _of("double"), ("typeWidening",))


def with_ids(folder: Path) -> None:
    """Write a table whose file has field ids, as some writers add them."""
    field = pa.field("v", pa.int64(), metadata={_ID: "7"})
    _commit(DeltaLog(folder), _NUMBERS.cast(pa.schema([field])), _of("long"))


def _of(type_: str) -> dict[str, Any]:
    return column("v", type_)


def _commit(
    log: DeltaLog,
    rows: pa.Table,
    of: dict[str, Any],
    features: tuple[str, ...] = (),
    configuration: dict[str, str] | None = None,
    **file: Any,
) -> None:
    needs = protocol(3, *features) if features else protocol()
    log.commit(needs, metadata([of], (), configuration), log.write_file("f", rows, **file))
