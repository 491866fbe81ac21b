"""Avro files of Iceberg's metadata, in the spellings of their writers."""

from __future__ import annotations

from typing import Any

from tests.support.files.avro_files import avro_file
from windrow_service.iceberg.avro_columns import read_columns


def _manifest(spelt: Any) -> bytes:
    """Return a manifest of one entry whose primitive types are spelt by a function."""

    def array(number: int, *kinds: str) -> Any:
        fields = [
            {"name": f"f{at}", "field-id": number + at, "type": spelt(kind)}
            for at, kind in enumerate(kinds, 1)
        ]
        items = {"type": "record", "name": f"r{number}", "fields": fields}
        return {"type": "array", "items": items if len(kinds) > 1 else spelt(kinds[0])}

    kinds = {
        "counts": array(10, "int", "long"),
        "bounds": array(20, "int", "bytes"),
        "splits": array(30, "long"),
        "size": spelt("long"),
        "path": ["null", spelt("string")],
    }
    fields = [
        {"name": name, "field-id": number, "type": kind}
        for number, (name, kind) in enumerate(kinds.items())
    ]
    row = {
        "counts": [{"f1": 1, "f2": 7}, {"f1": 2, "f2": 8}],
        "bounds": [{"f1": 1, "f2": b"a"}],
        "splits": [4, 128],
        "size": 300,
        "path": "f.parquet",
    }
    return avro_file({"type": "record", "name": "entry", "fields": fields}, [row])


def test_types_that_duckdb_writes_as_objects_are_those_of_their_names() -> None:
    columns = read_columns(_manifest(lambda kind: {"type": kind}))

    assert columns == read_columns(_manifest(str))
    assert columns[1] == [{1: b"a"}]
    assert isinstance(columns[0][0], bytes)
