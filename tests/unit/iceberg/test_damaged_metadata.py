"""Damaged, hostile or missing metadata fails a refresh by name, and does no other harm."""

from __future__ import annotations

import contextlib
import json
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from tests.support.laws import examples
from tests.support.tables.iceberg import new_table, newest_metadata
from tests.support.tables.iceberg_files import read_avro, write_avro
from windrow_service.iceberg.errors import IcebergMetadataError
from windrow_service.iceberg.paths import TableFolders
from windrow_service.iceberg.reading import SnapshotFiles, read_table
from windrow_service.inventory.footers.isolation import IsolatedExecutor

ROWS = pa.table({"id": [1, 2, 3], "name": ["a", "b", None]})
DEEP = 100_000


@pytest.fixture(scope="module")
def executor() -> Iterator[IsolatedExecutor]:
    with IsolatedExecutor(1) as isolated:
        yield isolated


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with one manifest."""
    made, location = new_table(tmp_path_factory.mktemp("iceberg"), ROWS.schema)
    made.append(ROWS)
    return Path(location)


@pytest.fixture
def restored(table: Path) -> Iterator[None]:
    kept = {path: path.read_bytes() for path in table.glob("metadata/*")}
    yield
    for path, content in kept.items():
        path.write_bytes(content)


def _read(table: Path, executor: IsolatedExecutor) -> SnapshotFiles:
    options = {"metadata": str(newest_metadata(table))}
    return read_table(TableFolders(str(table), ()), options, None, None, executor)


def _manifest(table: Path) -> Path:
    (found,) = (one for one in table.glob("metadata/*.avro") if not one.name.startswith("snap-"))
    return found


def _list(table: Path) -> Path:
    (found,) = table.glob("metadata/snap-*.avro")
    return found


def _change_metadata(table: Path, change: Callable[[dict[str, Any]], None]) -> None:
    path = newest_metadata(table)
    stated = json.loads(path.read_text())
    change(stated)
    path.write_text(json.dumps(stated))


def _change_entries(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    schema, head, records = read_avro(path)
    for record in records:
        change(record)
    write_avro(path, schema, head, records)


def _refused(table: Path, executor: IsolatedExecutor, reason: str) -> None:
    with pytest.raises(IcebergMetadataError, match=reason):
        _read(table, executor)


@pytest.mark.usefixtures("restored")
@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "not JSON"),
        (b"[" * DEEP, "not JSON"),
        (b'{"format-version":4}', "format version 4"),
        (b'{"format-version":2}', "is not valid"),
        (b'{"format-version":2,"location":1,"schemas":[]}', "is not valid"),
        (b"\x1f\x8b\x08\x00damaged", "cut off"),
    ],
)
def test_damaged_metadata_is_refused(
    content: bytes, reason: str, table: Path, executor: IsolatedExecutor
) -> None:
    newest_metadata(table).write_bytes(content)

    _refused(table, executor, reason)


@pytest.mark.usefixtures("restored")
def test_a_schema_that_is_nested_too_deeply_is_refused(
    table: Path, executor: IsolatedExecutor
) -> None:
    def deepen(stated: dict[str, Any]) -> None:
        type_: Any = "int"
        for number in range(300):
            type_ = {
                "type": "struct",
                "fields": [{"id": 100 + number, "name": "f", "required": False, "type": type_}],
            }
        stated["schemas"][0]["fields"][0]["type"] = type_

    _change_metadata(table, deepen)

    _refused(table, executor, "not valid|levels deep")


@pytest.mark.usefixtures("restored")
@pytest.mark.parametrize("find", [_manifest, _list])
def test_a_missing_file_is_named(
    find: Callable[[Path], Path], table: Path, executor: IsolatedExecutor
) -> None:
    path = find(table)
    path.unlink()

    _refused(table, executor, f"{path.name}' is missing")


@pytest.mark.usefixtures("restored")
@pytest.mark.parametrize("find", [_manifest, _list])
def test_every_cut_off_file_is_refused(
    find: Callable[[Path], Path], table: Path, executor: IsolatedExecutor
) -> None:
    content = find(table).read_bytes()
    for length in [0, 3, 20, len(content) // 2, len(content) - 20, len(content) - 1]:
        find(table).write_bytes(content[:length])

        _refused(table, executor, "is damaged")


def _with_block(path: Path, count: int, data: bytes, codec: bytes) -> None:
    """Replace the blocks of an Avro file by one."""
    schema, _, _ = read_avro(path)
    head = {b"avro.schema": json.dumps(schema).encode(), b"avro.codec": codec}
    content = b"Obj\x01" + _number(len(head))
    for name, value in head.items():
        content += _number(len(name)) + name + _number(len(value)) + value
    content += b"\0" + bytes(16)
    path.write_bytes(content + _number(count) + _number(len(data)) + data + bytes(16))


def _number(value: int) -> bytes:
    zigzag, found = (value << 1) ^ (value >> 63), b""
    while zigzag > 127:
        found += bytes([zigzag & 127 | 128])
        zigzag >>= 7
    return found + bytes([zigzag])


@pytest.mark.usefixtures("restored")
@pytest.mark.parametrize(
    ("count", "data", "codec"),
    [
        # More entries than bytes, lengths that lead elsewhere, and endless maps.
        (2**60, b"\0", b"null"),
        (1, b"\x02" * 10, b"null"),
        (1, b"\x02" * 8 + _number(2**62), b"null"),
        (1, b"\x02" * 8 + _number(-5) + b"\0" * 99, b"null"),
        (1, b"\xff" * 64, b"null"),
        (1, b"\0", b"deflate"),
        (1, b"\0" * 40, b"snappy"),
        (1, b"\xff\xff\xff\xff\x7f" + b"\0" * 40, b"snappy"),
        (1, b"\0" * 40, b"zstandard"),
        (1, b"\0" * 40, b"lzma"),
        (1, b"\0" * 40, b"\xff"),
    ],
)
def test_blocks_that_contradict_their_headers_are_refused(
    count: int, data: bytes, codec: bytes, table: Path, executor: IsolatedExecutor
) -> None:
    _with_block(_manifest(table), count, data, codec)

    _refused(table, executor, "is damaged")


@pytest.mark.slow
@pytest.mark.usefixtures("restored")
def test_a_block_that_expands_beyond_the_limit_is_refused(
    table: Path, executor: IsolatedExecutor
) -> None:
    packing = zlib.compressobj(9, zlib.DEFLATED, -15)
    # A flushed piece can be repeated anywhere, so packing one is enough.
    piece = packing.compress(bytes(2**24)) + packing.flush(zlib.Z_FULL_FLUSH)
    bomb = piece * 32 + packing.flush()
    _with_block(_manifest(table), 1, bomb, b"deflate")

    _refused(table, executor, "too large")


@pytest.mark.usefixtures("restored")
@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("file_path", "/etc/passwd", "may read"),
        ("file_path", "file:///etc/passwd", "may read"),
        ("file_path", "s3://elsewhere/a.parquet", "may read"),
        ("file_path", "{table}/data/../../a.parquet", "may read"),
        ("file_path", "{table}/data/", "may read"),
        ("file_path", "{table}/da\nta/a", "may read"),
        ("file_path", "a.parquet", "may read"),
        ("record_count", -1, "negative"),
        ("file_size_in_bytes", -1, "negative"),
        ("file_format", "ORC", "format ORC"),
        ("key_metadata", b"key", "encrypted"),
        # A delete file, which is no data.
        ("content", 1, "field 134 is out of range"),
    ],
)
def test_impossible_entries_are_refused(
    name: str, value: Any, reason: str, table: Path, executor: IsolatedExecutor
) -> None:
    if isinstance(value, str):
        value = value.replace("{table}", str(table))

    def change(record: dict[str, Any]) -> None:
        record["data_file"][name] = value

    _change_entries(_manifest(table), change)

    _refused(table, executor, reason)


@pytest.mark.usefixtures("restored")
@pytest.mark.parametrize(
    ("find", "name", "value"),
    [(_manifest, "status", 3), (_list, "content", 1), (_list, "content", 2)],
)
def test_files_of_which_it_is_not_clear_whether_they_are_data_are_refused(
    find: Callable[[Path], Path], name: str, value: int, table: Path, executor: IsolatedExecutor
) -> None:
    _change_entries(find(table), lambda record: record.update({name: value}))

    _refused(table, executor, "out of range")


@pytest.mark.usefixtures("restored")
def test_an_impossible_number_of_files_hides_no_manifest(
    table: Path, executor: IsolatedExecutor
) -> None:
    _change_entries(_list(table), lambda record: record.update(existing_files_count=-(2**40)))

    assert _read(table, executor).files["row_count"].to_pylist() == [3]


@pytest.mark.usefixtures("restored")
@pytest.mark.parametrize("offsets", [[4, 4], [-1], [2**40], [900, 4], []])
def test_impossible_offsets_of_row_groups_are_ignored(
    offsets: list[int], table: Path, executor: IsolatedExecutor
) -> None:
    def change(record: dict[str, Any]) -> None:
        record["data_file"]["split_offsets"] = offsets

    _change_entries(_manifest(table), change)

    assert _read(table, executor).files["row_group_offsets"].to_pylist() == [[]]


@pytest.mark.usefixtures("restored")
def test_impossible_bounds_and_counts_are_unknown(table: Path, executor: IsolatedExecutor) -> None:
    def change(record: dict[str, Any]) -> None:
        file = record["data_file"]
        for name in ("lower_bounds", "upper_bounds"):
            file[name] = [{"key": 1, "value": b"\0" * 3}, {"key": 2, "value": b"\xff"}]
        file["null_value_counts"] = [{"key": 1, "value": -1}, {"key": 2, "value": 99}]

    _change_entries(_manifest(table), change)

    (stats,) = _read(table, executor).files["stats"].to_pylist()
    unknown = {"min": None, "max": None, "null_count": None}
    assert stats["id"] == unknown
    # Not UTF-8: a bound that is cut off within its first character is empty.
    assert stats["name"] in ({**unknown, "min": ""}, unknown)


@examples(60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(at=st.floats(0, 1), bit=st.integers(0, 7), in_list=st.booleans())
@pytest.mark.usefixtures("restored")
def test_a_flipped_bit_causes_an_error_or_still_gives_an_inventory(
    at: float, bit: int, in_list: bool, table: Path, executor: IsolatedExecutor
) -> None:
    path = (_list if in_list else _manifest)(table)
    content = path.read_bytes()
    changed = bytearray(content)
    changed[int(at * (len(content) - 1))] ^= 1 << bit
    path.write_bytes(changed)
    try:
        with contextlib.suppress(IcebergMetadataError):
            assert len(_read(table, executor).files) <= 1
    finally:
        path.write_bytes(content)
