"""Schemas with more fields or levels than are read are refused by the name of their file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pyarrow.types as pt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.files.avro_files import avro_file, block, long
from tests.support.laws import examples
from tests.support.tables.delta_tables import DeltaLog, column, metadata, protocol
from windrow.inferring import infer_columns
from windrow_calls.errors import InvalidArgumentError
from windrow_core.files.errors import InventoryError
from windrow_core.files.formats import FORMATS, ORC
from windrow_core.files.limits import MAX_LEVELS, ReadLimits
from windrow_core.files.schema import field_count
from windrow_service.delta.reading import LoggedTable, read_version
from windrow_service.iceberg.inventory import take_iceberg
from windrow_service.inventory.build import take_inventory
from windrow_service.inventory.footers.isolation import IsolatedExecutor
from windrow_service.inventory.look import Look

MOST = 40
# What a format writes for one field at most: itself, its type, and Parquet's groups in between.
AT_MOST_WRITTEN = 3
# Returns what is refused of a table with a schema; None if it is read.
Attempt = Callable[[Path, pa.Schema, IsolatedExecutor], str | None]


@pytest.fixture(scope="module")
def executor() -> Iterator[IsolatedExecutor]:
    with IsolatedExecutor(1) as executor:
        yield executor


def _refusal(read: Callable[[], object]) -> str | None:
    try:
        read()
    except (InventoryError, InvalidArgumentError) as error:
        return str(error)
    return None


def _of_files(folder: Path, format_: str, executor: IsolatedExecutor) -> str | None:
    limits = ReadLimits(fields=MOST)
    return _refusal(
        lambda: take_inventory(
            Look(location=str(folder), file_format=FORMATS[format_], limits=limits),
            executor=executor,
        )
    )


def _parquet(folder: Path, schema: pa.Schema, executor: IsolatedExecutor) -> str | None:
    pq.write_table(schema.empty_table(), folder / "wide")
    return _of_files(folder, "parquet", executor)


def _orc(folder: Path, schema: pa.Schema, executor: IsolatedExecutor) -> str | None:
    orc.write_table(schema.empty_table(), folder / "wide")
    return _of_files(folder, "orc", executor)


def _avro_type(type_: pa.DataType, name: str) -> Any:
    if pt.is_struct(type_):
        fields = [
            {"name": one.name, "type": _avro_type(one.type, name + one.name)} for one in type_
        ]
        return {"type": "record", "name": name, "fields": fields}
    if pt.is_list(type_):
        return {"type": "array", "items": _avro_type(type_.value_type, name)}
    return "long"


def _avro(folder: Path, schema: pa.Schema, executor: IsolatedExecutor) -> str | None:
    (folder / "wide").write_bytes(avro_file(_avro_type(pa.struct(list(schema)), "r"), []))
    return _of_files(folder, "avro", executor)


def _delta_type(type_: pa.DataType) -> Any:
    if pt.is_struct(type_):
        return {"type": "struct", "fields": [column(f.name, _delta_type(f.type)) for f in type_]}
    if pt.is_list(type_):
        element = _delta_type(type_.value_type)
        return {"type": "array", "elementType": element, "containsNull": True}
    return "long"


def _delta(folder: Path, schema: pa.Schema, _: IsolatedExecutor) -> str | None:
    columns = [column(one.name, _delta_type(one.type)) for one in schema]
    DeltaLog(folder / "wide").commit(protocol(), metadata(columns))
    table = LoggedTable(location=str(folder / "wide"), max_fields=MOST)
    return _refusal(lambda: read_version(table, None))


def _iceberg_type(type_: pa.DataType, ids: Iterator[int]) -> Any:
    if pt.is_struct(type_):
        fields = [
            {
                "id": next(ids),
                "name": one.name,
                "required": False,
                "type": _iceberg_type(one.type, ids),
            }
            for one in type_
        ]
        return {"type": "struct", "fields": fields}
    if pt.is_list(type_):
        number = next(ids)
        element = _iceberg_type(type_.value_type, ids)
        return {"type": "list", "element-id": number, "element-required": False, "element": element}
    return "long"


def _iceberg(
    folder: Path, schema: pa.Schema, executor: IsolatedExecutor, **parts: Any
) -> str | None:
    root = {**_iceberg_type(pa.struct(list(schema)), iter(range(1, 10**6))), "schema-id": 0}
    text = {
        "format-version": 2,
        "table-uuid": "00000000-0000-4000-8000-000000000000",
        "location": str(folder / "wide"),
        "last-sequence-number": 0,
        "last-updated-ms": 1,
        "last-column-id": 10**6,
        "current-schema-id": 0,
        "schemas": [root],
        "default-spec-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "last-partition-id": 999,
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
        **parts,
    }
    (folder / "wide" / "metadata").mkdir(parents=True)
    (folder / "wide" / "metadata" / "v1.metadata.json").write_text(json.dumps(text))
    location = str(folder / "wide")
    return _refusal(lambda: take_iceberg(location, options={}, max_fields=MOST, executor=executor))


def _value(type_: pa.DataType) -> Any:
    if pt.is_struct(type_):
        return {one.name: _value(one.type) for one in type_}
    return [_value(type_.value_type)] if pt.is_list(type_) else 1


def _json(folder: Path, schema: pa.Schema, _: IsolatedExecutor) -> str | None:
    (folder / "wide").write_text(json.dumps(_value(pa.struct(list(schema)))))
    return _refusal(lambda: infer_columns(str(folder), "json", {}, MOST))


def _csv(folder: Path, schema: pa.Schema, _: IsolatedExecutor) -> str | None:
    # A header has no nested fields.
    (folder / "wide").write_text(",".join(f"c{at}" for at in range(field_count(schema))) + "\n")
    return _refusal(lambda: infer_columns(str(folder), "csv", {"header": "true"}, MOST))


ATTEMPTS: dict[str, Attempt] = {
    "parquet": _parquet,
    "orc": _orc,
    "avro": _avro,
    "delta": _delta,
    "iceberg": _iceberg,
    "json": _json,
    "csv": _csv,
}
# Inference reads rows, which name no file.
INFERRED = ("json", "csv")


def _struct(types: list[pa.DataType]) -> pa.DataType:
    return pa.struct([(f"f{at}", type_) for at, type_ in enumerate(types)])


types = st.recursive(
    st.just(pa.int64()),
    lambda inner: st.one_of(inner.map(pa.list_), st.lists(inner, min_size=1).map(_struct)),
    max_leaves=20,
)
schemas = st.lists(types, min_size=1, max_size=2 * MOST).map(
    lambda columns: pa.schema([(f"c{at}", type_) for at, type_ in enumerate(columns)])
)


@pytest.mark.parametrize("format_", ATTEMPTS)
@examples(60, deadline=None)
@given(schema=schemas)
def test_more_fields_than_are_read_are_refused_by_name(
    format_: str, schema: pa.Schema, executor: IsolatedExecutor
) -> None:
    count = field_count(schema)
    with TemporaryDirectory() as folder:
        refusal = ATTEMPTS[format_](Path(folder), schema, executor)

    if count > MOST:
        assert refusal is not None
    if AT_MOST_WRITTEN * count < MOST:
        assert refusal is None
    if refusal is not None:
        assert "WINDROW_LIMITS__MAX_FIELDS" in refusal
        assert f"at most {MOST}" in refusal
        assert format_ in INFERRED or "wide" in refusal


def _deep(levels: int, kind: str) -> pa.Schema:
    type_: pa.DataType = pa.int64()
    for _ in range(levels):
        type_ = pa.list_(type_) if kind == "lists" else pa.struct([("f", type_)])
    return pa.schema([("c", type_)])


@pytest.mark.parametrize("kind", ["lists", "structs"])
@pytest.mark.parametrize("format_", ["parquet", "orc", "avro", "delta", "iceberg"])
def test_deeper_fields_than_are_read_are_refused_by_name(
    format_: str, kind: str, executor: IsolatedExecutor, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr(f"{__name__}.MOST", 10_000)
    # Parquet has two groups for each list.
    for name, levels in (("fit", MAX_LEVELS // 2 - 2), ("deep", MAX_LEVELS + 5)):
        (tmp_path / name).mkdir()
        refusal = ATTEMPTS[format_](tmp_path / name, _deep(levels, kind), executor)
        if name == "fit":
            assert refusal is None
        else:
            assert refusal is not None
            assert "wide" in refusal
            assert f"more than {MAX_LEVELS} levels" in refusal


@pytest.mark.parametrize(
    ("part", "number", "field"),
    [
        ("partition-specs", "spec-id", {"name": "p", "transform": "bucket[2]", "source-id": 1}),
        ("sort-orders", "order-id", {"transform": "identity", "source-id": 1, "direction": "asc"}),
    ],
)
def test_fields_of_partition_specs_and_sort_orders_are_counted_too(
    part: str, number: str, field: dict[str, Any], executor: IsolatedExecutor, tmp_path: Path
) -> None:
    fields = [
        {**field, "name": f"p{at}", "field-id": 1000 + at, "null-order": "nulls-first"}
        for at in range(MOST + 1)
    ]
    cases: list[tuple[str, list[Any]]] = [
        ("fit", [[], [], fields[:-1]]),
        ("wide", [fields[:2], fields[2:]]),
    ]
    for name, lists in cases:
        specs = [{number: at, "fields": some} for at, some in enumerate(lists)]
        (tmp_path / name).mkdir()
        more = {part: specs, f"default-{number}": 0}

        refusal = _iceberg(tmp_path / name, pa.schema([("c", pa.int64())]), executor, **more)

        if name == "fit":
            assert refusal is None
        else:
            assert refusal is not None
            assert "v1.metadata.json" in refusal
            assert f"{MOST + 1} fields, and at most {MOST} are read" in refusal


@pytest.mark.parametrize("escape", [b'"\\u0074ype"', b'"t\\u0079pe"'])
def test_keys_whose_letters_are_escaped_are_counted_too(
    escape: bytes, executor: IsolatedExecutor, tmp_path: Path
) -> None:
    fields = [{"name": f"c{at}", "type": "int"} for at in range(10 * MOST)]
    text = json.dumps({"type": "record", "name": "r", "fields": fields}).encode()
    schema = block(b"avro.schema") + block(text.replace(b'"type"', escape))
    (tmp_path / "wide").write_bytes(b"Obj\x01" + long(1) + schema + long(0) + bytes(16))

    refusal = _of_files(tmp_path, "avro", executor)

    assert refusal is not None
    assert "'wide'" in refusal
    assert "WINDROW_LIMITS__MAX_FIELDS" in refusal


def test_files_that_are_too_wide_only_together_are_refused(
    executor: IsolatedExecutor, tmp_path: Path
) -> None:
    for number in range(5):
        names = [f"c{number}_{at}" for at in range(MOST // 3)]
        pq.write_table(pa.table({name: [1] for name in names}), tmp_path / f"{number}.parquet")

    refusal = _of_files(tmp_path, "parquet", executor)

    assert refusal is not None
    assert str(tmp_path) in refusal
    assert "WINDROW_LIMITS__MAX_FIELDS" in refusal


def test_an_orc_footer_that_is_longer_than_the_first_read_is_read(
    executor: IsolatedExecutor, tmp_path: Path
) -> None:
    columns = {f"a_long_name_of_a_column_{at}": [at] for at in range(5_000)}
    orc.write_table(pa.table(columns), tmp_path / "a.orc", compression="uncompressed")

    inventory = take_inventory(Look(location=str(tmp_path), file_format=ORC), executor=executor)

    assert inventory.files["row_count"].to_pylist() == [1]
    assert inventory.data_schema.names == list(columns)
