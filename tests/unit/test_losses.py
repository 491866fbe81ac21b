"""`windrow_jobs.losses`: what rewriting a file through Spark would lose is found beforehand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from windrow_jobs.losses import loss, losses

INTS = pa.int64()
STRUCT = pa.struct([("a", INTS), ("b", pa.list_(pa.string()))])
MICROS = pa.timestamp("us", "UTC")
ID = {b"PARQUET:field_id": b"3"}


def loss_of(file_type: pa.DataType | pa.Field, spark_type: Any, **options: Any) -> str | None:
    field = file_type if isinstance(file_type, pa.Field) else pa.field("c", file_type)
    table = pa.table([pa.nulls(2, field.type)], schema=pa.schema([field]))
    metadata = options.pop("metadata", None)
    sink = pa.BufferOutputStream()
    pq.write_table(table.replace_schema_metadata(metadata), sink, **options)
    return loss(pq.ParquetFile(pa.BufferReader(sink.getvalue())), {"c": spark_type})


@pytest.mark.parametrize(
    ("file_type", "spark_type"),
    [
        (INTS, INTS),
        (STRUCT, pa.struct([("a", INTS), ("b", pa.list_(pa.field("element", pa.string())))])),
        (pa.map_(pa.string(), INTS), pa.map_(pa.string(), INTS)),
        (pa.decimal128(9, 2), pa.decimal128(9, 2)),
    ],
    ids=str,
)
def test_what_spark_writes_alike_is_no_loss(file_type: Any, spark_type: Any) -> None:
    assert loss_of(file_type, spark_type) is None


@pytest.mark.parametrize(
    ("file_type", "spark_type"),
    [
        (pa.timestamp("ns"), pa.timestamp("us")),
        (pa.timestamp("ms"), pa.timestamp("us")),
        (pa.timestamp("us"), MICROS),
        (pa.uint64(), pa.decimal128(20, 0)),
        (pa.int32(), INTS),
        (pa.large_string(), pa.string()),
        (pa.dictionary(pa.int32(), pa.string()), pa.string()),
        (pa.timestamp("us", "Europe/Berlin"), MICROS),
        (pa.field("c", pa.binary(), metadata={"ARROW:extension:name": "geo.wkb"}), pa.binary()),
        (pa.float16(), pa.float32()),
        (pa.null(), pa.null()),
        (pa.binary(16), pa.binary()),
        (pa.decimal128(9, 2), pa.decimal128(10, 2)),
        (pa.time32("ms"), None),
        (pa.struct([("a", INTS), ("extra", INTS)]), pa.struct([("a", INTS)])),
        (pa.list_(pa.struct([("a", pa.uint32())])), pa.list_(pa.struct([("a", INTS)]))),
        (pa.map_(pa.string(), pa.timestamp("ns")), pa.map_(pa.string(), pa.timestamp("us"))),
        (pa.field("c", INTS, metadata=ID), INTS),
        (pa.list_(pa.field("element", INTS, metadata=ID)), pa.list_(INTS)),
        (pa.field("C", INTS), INTS),
        (pa.field("other", INTS), INTS),
    ],
    ids=str,
)
def test_what_spark_writes_otherwise_is_named(file_type: Any, spark_type: Any) -> None:
    name = file_type.name if isinstance(file_type, pa.Field) else "c"
    assert f"column '{name}" in (loss_of(file_type, spark_type) or "")


def test_int96_of_others_and_foreign_metadata_are_losses() -> None:
    int96 = {"use_deprecated_int96_timestamps": True, "store_schema": False}
    assert "timestamp[ns]" in (loss_of(MICROS, MICROS, **int96) or "")
    assert "'owner'" in (loss_of(INTS, INTS, metadata={"owner": "ana"}) or "")


def test_a_file_that_is_gone_is_no_loss_but_one_that_cannot_be_read_is(tmp_path: Path) -> None:
    (tmp_path / "damaged").write_bytes(b"PAR1 no footer PAR1")
    gone, damaged = losses(str(tmp_path), ["gone", "damaged"], {})
    assert gone is None
    assert "footer cannot be read" in (damaged or "")


@pytest.mark.parametrize(
    ("column", "lost"),
    [
        ({"type": "long", "metadata": {"comment": "a note"}}, None),
        ({"type": "long", "metadata": {"ml_attr": {"name": "x"}}}, "ml_attr"),
        ({"type": {"type": "udt", "class": "VectorUDT", "sqlType": "long"}}, "VectorUDT"),
    ],
)
def test_what_spark_noted_about_columns_is_a_loss_unless_the_catalog_has_it(
    column: dict[str, Any], lost: str | None
) -> None:
    row = {"type": "struct", "fields": [{"name": "c", "nullable": True, "metadata": {}, **column}]}
    key = "org.apache.spark.sql.parquet.row.metadata"
    found = loss_of(INTS, INTS, metadata={key: json.dumps(row)})
    assert found is None if lost is None else lost in (found or "")


def test_a_column_that_the_file_lacks_is_a_loss() -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"c": pa.array([1], INTS)}), sink)
    file = pq.ParquetFile(pa.BufferReader(sink.getvalue()))
    assert loss(file, {"c": INTS}) is None
    assert "lacks column 'later'" in (loss(file, {"c": INTS, "later": INTS}) or "")


@pytest.mark.parametrize(
    ("index", "is_lost"),
    [
        ([], False),
        ([{"kind": "range", "name": None, "start": 0, "stop": 2, "step": 1}], False),
        ([{"kind": "range", "name": "k", "start": 0, "stop": 2, "step": 1}], True),
        ([{"kind": "range", "name": None, "start": 10, "stop": 12, "step": 1}], True),
        (["c"], True),
        (None, True),
    ],
    ids=str,
)
def test_an_index_of_pandas_is_a_loss(index: Any, is_lost: bool) -> None:
    lost = loss_of(INTS, INTS, metadata={"pandas": json.dumps({"index_columns": index})})
    assert (lost is not None) is is_lost


@pytest.mark.parametrize(
    "note", ["", "[[", "[" * 100_000, '{"metadata": 1}', '{"metadata": {"a": 1}}']
)
def test_a_damaged_note_of_spark_is_a_loss(note: str) -> None:
    key = "org.apache.spark.sql.parquet.row.metadata"
    assert key in (loss_of(INTS, INTS, metadata={key: note}) or "")
