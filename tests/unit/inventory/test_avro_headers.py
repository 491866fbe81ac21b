"""Headers of Avro files: the columns that they state, and refusals of damaged ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.support.files.avro_files import avro_file, block, long
from windrow_core.files.errors import UnreadableFootersError
from windrow_core.files.formats import FORMATS
from windrow_core.files.limits import USUAL_LIMITS, ReadLimits, TooWideError
from windrow_core.files.status import FileStatus
from windrow_service.avro.headers import read_chunk
from windrow_service.avro.schemas import AvroSchemaError, avro_columns
from windrow_service.inventory.build import take_inventory
from windrow_service.inventory.look import Look

RECORD = {"type": "record", "name": "r", "fields": [{"name": "a", "type": "int"}]}


def read(folder: Path, content: bytes, limits: ReadLimits = USUAL_LIMITS) -> Any:
    (folder / "f").write_bytes(content)
    status = (folder / "f").stat()
    return read_chunk(
        str(folder), 0, ["f"], [FileStatus(status.st_size, status.st_mtime_ns)], limits=limits
    )


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"PAR1 and more", "it is not Avro"),
        (b"Ob", "part of the file is missing"),
        (avro_file(RECORD, [])[:40], "part of the file is missing"),
        (b"Obj\x01" + long(1) + long(2**40) + b"x", "part of the file is missing"),
        (b"Obj\x01" + long(1) + long(-5), "its header is damaged"),
        (b"Obj\x01" + b"\xff" * 20, "its header is damaged"),
        (b"Obj\x01" + long(2**60), "more than 10,000 entries"),
        (b"Obj\x01" + long(1) + block(b"a") + block(b"b") + long(0), "has no schema"),
        (b"Obj\x01" + long(1) + block(b"avro.schema") + block(b"{") + long(0), "is not JSON"),
        (avro_file("int", []), "its schema is of int32"),
        (avro_file({"type": "record", "name": "r"}, []), "a record has no fields"),
        (avro_file(["null", {"type": "array", "items": []}], []), "has no columns"),
    ],
)
def test_a_header_that_cannot_be_read_says_why(tmp_path: Path, content: bytes, said: str) -> None:
    ((path, reason),) = read(tmp_path, content).unreadable

    assert (path, said in reason) == ("f", True), reason


def test_a_long_header_is_read_up_to_the_limit(tmp_path: Path) -> None:
    content = avro_file(RECORD, [], {"note": b"x" * 200_000})

    (group,) = read(tmp_path, content).groups
    assert group.files.schema == pa.schema([("a", pa.int32())])
    ((_, reason),) = read(tmp_path, content, ReadLimits(footer_bytes=100_000)).unreadable
    assert "MAX_FOOTER_BYTES" in reason


@pytest.mark.parametrize(
    "deep",
    [
        b'{"type":"array","items":' * 200 + b'"int"' + b"}" * 200,
        b"[" * 100_000 + b"]" * 100_000,
        json.dumps({**RECORD, "fields": [{"name": "a", "type": ["null", "r"]}]}).encode(),
    ],
    ids=["types", "brackets", "itself"],
)
def test_schemas_that_are_nested_too_deeply_are_refused(deep: bytes) -> None:
    with pytest.raises(ValueError, match=r"nested more than|is not JSON|without end"):
        avro_columns(deep)


def again(levels: int, times: int) -> dict[str, Any]:
    """Return a schema of records each of which has the one before it several times, by its name."""
    record: dict[str, Any] = {**RECORD, "name": "r0"}
    for level in range(1, levels):
        first, *others = [record, *[record["name"]] * (times - 1)]
        fields = [{"name": f"f{at}", "type": one} for at, one in enumerate([first, *others])]
        record = {"type": "record", "name": f"r{level}", "fields": fields}
    return record


def test_fields_of_types_that_are_used_again_by_name_count_each_time(tmp_path: Path) -> None:
    # 512 records of one field each, and 511 above them, the first of which is the table.
    few, many = again(10, 2), again(60, 2)

    assert pa.types.is_struct(avro_columns(json.dumps(few).encode(), 1_534).field(1).type)
    with pytest.raises(TooWideError, match="a schema of 1,534 fields, and at most 1,533 are read"):
        avro_columns(json.dumps(few).encode(), 1_533)
    ((path, reason),) = read(tmp_path, avro_file(many, [])).unreadable
    assert (path, "fields, and at most 10,000 are read" in reason) == ("f", True)


def test_levels_below_a_type_that_is_used_again_count(tmp_path: Path) -> None:
    chain: list[Any] = [{**RECORD, "name": "r0"}]
    for level in range(1, 102):
        field = {"name": "f", "type": f"r{level - 1}"}
        chain.append({"type": "record", "name": f"r{level}", "fields": [field]})
    fields = [{"name": f"c{at}", "type": one} for at, one in enumerate(chain)]

    avro_columns(json.dumps({**RECORD, "fields": fields[:-3]}).encode())
    with pytest.raises(TooWideError, match="nested more than 100 levels deep"):
        avro_columns(json.dumps({**RECORD, "fields": fields}).encode())


@pytest.mark.parametrize(
    "union",
    [
        ["int", {"type": "int"}],
        ["null", "null"],
        [{"type": ["int"]}, "string"],
        [{"type": {"type": "int"}}, "string"],
        [["int"], "string"],
        [None, "int"],
    ],
)
def test_unions_that_avro_does_not_allow_are_refused(union: object) -> None:
    schema = {**RECORD, "fields": [{"name": "a", "type": union}]}

    with pytest.raises(AvroSchemaError, match="its schema is damaged"):
        avro_columns(json.dumps(schema).encode())


def test_columns_of_all_files_are_united_and_rows_are_unknown(tmp_path: Path) -> None:
    other = {**RECORD, "fields": [{"name": "b", "type": "string"}, {"name": "A", "type": "long"}]}
    (tmp_path / "1.avro").write_bytes(avro_file(RECORD, [{"a": 1}]))
    (tmp_path / "2").write_bytes(avro_file(other, [{"b": "x", "A": 1}]))
    (tmp_path / "3").write_bytes(b"")

    found = take_inventory(Look(location=str(tmp_path), file_format=FORMATS["avro"]))

    assert found.data_schema == pa.schema([("a", pa.int64()), ("b", pa.string())])
    assert found.files["row_count"].to_pylist() == [None, None]
    (tmp_path / "4").write_bytes(b"PAR1")
    with pytest.raises(UnreadableFootersError, match=r"as Avro.*'4'.*not Avro"):
        take_inventory(Look(location=str(tmp_path), file_format=FORMATS["avro"]))
