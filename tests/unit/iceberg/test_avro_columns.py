"""Avro files of Iceberg's metadata, in the spellings of their writers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.files.avro_files import avro_file, block, long
from windrow_service.iceberg.avro_columns import DamagedFileError, read_columns


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


@pytest.mark.parametrize(
    "nothing", ["null", {"type": "record", "name": "n", "fields": [{"name": "a", "type": "null"}]}]
)
def test_lists_of_values_without_bytes_are_refused_since_they_have_any_length(nothing: Any) -> None:
    fields = [{"name": "list", "field-id": 1, "type": {"type": "array", "items": nothing}}]
    empty = avro_file({"type": "record", "name": "entry", "fields": fields}, [{"list": []}])
    end = long(1) + block(long(0)) + empty[-16:]
    endless = long(1) + block(long(2**20) + long(0)) + empty[-16:]

    assert read_columns(empty) == {1: [[]]}
    assert empty.endswith(end)
    with pytest.raises(DamagedFileError, match="a list of values that take no bytes"):
        read_columns(empty.removesuffix(end) + endless)
