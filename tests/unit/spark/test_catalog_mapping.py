"""How tables of a catalog are registered, and why some cannot be."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql.types import StructType

from windrow_spark.catalog import mapping
from windrow_spark.catalog.entries import CatalogEntry, CatalogPartition, matching, pattern_of
from windrow_spark.catalog.mapping import Mapped, UnreadableTableError, partitions_of

PARQUET = "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"
PARQUET_INPUT = "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat"
ORC = "org.apache.hadoop.hive.ql.io.orc.OrcSerde"
AVRO = "org.apache.hadoop.hive.serde2.avro.AvroSerDe"
LAZY = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"
TEXT_INPUT = "org.apache.hadoop.mapred.TextInputFormat"


def definition_of(entry: CatalogEntry) -> Mapped:
    # The defaults of these tables are literals that SQL and JSON write alike.
    return mapping.definition_of(entry, lambda sql, _: json.loads(sql.lower()))


def schema(**columns: str) -> str:
    fields = [
        {
            "name": name,
            "type": json.loads(type_) if type_[0] == "{" else type_,
            "nullable": True,
            "metadata": {},
        }
        for name, type_ in columns.items()
    ]
    return StructType.fromJson({"type": "struct", "fields": fields}).json()


HIVE = CatalogEntry(
    database="sales",
    name="t",
    kind="MANAGED",
    provider="hive",
    schema=schema(id="long", ds="date"),
    partition_columns=["ds"],
    lists_partitions=True,
    location="file:/data/t",
    serde=PARQUET,
    input_format=PARQUET_INPUT,
    options={"serialization.format": "1"},
)
SPARK = replace(HIVE, provider="parquet", options={"path": "/data/t", "compression": "zstd"})


def test_a_table_keeps_its_columns_and_partitions() -> None:
    for entry in (HIVE, SPARK, replace(HIVE, provider=None)):
        assert definition_of(entry).fields == {
            "location": "/data/t",
            "format": "parquet",
            "columns": [{"name": "id", "type": "bigint"}],
            "partition_columns": [{"name": "ds", "type": "date"}],
            "listed_partitions": True,
        }
    # Where Spark looks for partitions in folders, so do we.
    by_folders = definition_of(replace(SPARK, lists_partitions=False)).fields
    assert by_folders["listed_partitions"] is False
    remote = definition_of(replace(SPARK, location="s3a://b/t")).fields["location"]
    assert remote == "s3://b/t"
    flat = definition_of(replace(SPARK, partition_columns=[], schema=schema(id="long"))).fields
    # No folder is taken for a partition.
    assert (flat["partition_columns"], flat["listed_partitions"]) == ([], False)


@pytest.mark.parametrize(
    ("changes", "format_", "options"),
    [
        ({"serde": ORC}, "orc", None),
        ({"provider": "ORC", "options": {}}, "orc", None),
        ({"serde": AVRO}, "avro", None),
        (
            {"serde": LAZY, "input_format": TEXT_INPUT, "options": {"field.delim": "|"}},
            "text",
            {"serde": LAZY, "field.delim": "|"},
        ),
        (
            {
                "serde": LAZY,
                "input_format": TEXT_INPUT,
                "properties": {"skip.header.line.count": "1"},
            },
            "text",
            {"serde": LAZY, "skip.header.line.count": "1"},
        ),
        (
            {"provider": "csv", "options": {"header": "true", "inferSchema": "true", "sep": ";"}},
            "csv",
            {"header": "true", "sep": ";"},
        ),
        (
            {"provider": "org.apache.spark.sql.execution.datasources.json", "options": {}},
            "json",
            None,
        ),
    ],
)
def test_formats_and_options_come_from_providers_and_serdes(
    changes: dict[str, Any], format_: str, options: dict[str, str] | None
) -> None:
    entry = replace(HIVE, schema=schema(id="long", ds="string"), **changes)
    fields = definition_of(entry).fields
    assert (fields["format"], fields.get("format_options")) == (format_, options)


def test_sparks_buckets_are_kept_and_hives_are_left_out() -> None:
    buckets: dict[str, Any] = {
        "bucket_count": 8,
        "bucket_columns": ["id"],
        "sort_columns": ["id"],
    }
    ours = definition_of(replace(SPARK, **buckets))
    assert ours.fields["bucket_spec"] == {"columns": ["id"], "count": 8}
    assert (ours.fields["sort_columns"], ours.notes) == ([{"name": "id"}], ())
    hives = definition_of(replace(HIVE, **buckets))
    assert not hives.fields.keys() & {"bucket_spec", "sort_columns"}
    assert hives.notes == ("its 8 buckets are left out, since Hive's hash is not Spark's",)


@pytest.mark.parametrize(
    ("properties", "serde", "kind"),
    [
        ({"transactional": "true"}, ORC, "full"),
        (
            {"transactional": "TRUE", "transactional_properties": "insert_only"},
            PARQUET,
            "insert_only",
        ),
        ({"transactional": "false"}, ORC, None),
    ],
)
def test_transactional_tables_are_registered_as_such(
    properties: dict[str, str], serde: str, kind: str | None
) -> None:
    mapped = definition_of(replace(HIVE, serde=serde, properties=properties))
    assert mapped.fields.get("transactional") == kind
    assert [kind for note in mapped.notes if "valid_write_ids" in note] == list(
        filter(None, [kind])
    )


@pytest.mark.parametrize(
    ("changes", "format_"),
    [
        ({"provider": "delta"}, "delta"),
        ({"provider": "iceberg"}, "iceberg"),
        ({"provider": None, "serde": None, "properties": {"table_type": "ICEBERG"}}, "iceberg"),
    ],
)
def test_tables_that_keep_a_log_are_registered_by_location_alone(
    changes: dict[str, Any], format_: str
) -> None:
    entry = replace(HIVE, **changes)
    assert definition_of(entry).fields == {"location": "/data/t", "format": format_}
    kept = {**entry.properties, "metadata_location": "file:/data/t/metadata/7.json"}
    options = {"metadata": "/data/t/metadata/7.json"} if format_ == "iceberg" else None
    assert definition_of(replace(entry, properties=kept)).fields.get("format_options") == options


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (
            {"error": "Cannot recognize hive type string\nat x"},
            "describe it: Cannot recognize hive type",
        ),
        ({"kind": "VIEW"}, "it is a view"),
        ({"location": None}, "no location"),
        ({"provider": "hudi"}, "data source 'hudi' is not read"),
        ({"serde": "com.example.Serde"}, "SerDe com.example.Serde is not read"),
        ({"serde": None}, "storage handler is not read"),
        ({"serde": LAZY}, "input format org.apache.hadoop.hive.ql.io.parquet.Mapred"),
        ({"properties": {"transactional": "true"}}, "its format is parquet instead of orc"),
        ({"schema": schema(id="long", ds="date", i="interval")}, "'i' is interval"),
        ({"schema": schema(id="char(3)", ds="date")}, "char(3), whose values Spark pads"),
        (
            {
                "serde": AVRO,
                "schema": schema(id="decimal(5,2)", ds="date"),
                "partition_columns": [],
            },
            "Hive's Avro SerDe may read differently",
        ),
    ],
)
def test_an_unreadable_table_is_refused_with_the_reason(
    changes: dict[str, Any], reason: str
) -> None:
    with pytest.raises(UnreadableTableError) as caught:
        definition_of(replace(HIVE, **changes))
    assert reason in str(caught.value)


def partition(**changes: Any) -> CatalogPartition:
    return replace(
        CatalogPartition(["2026-01-01"], "/data/p", PARQUET, PARQUET_INPUT, {}), **changes
    )


def test_partitions_of_another_format_than_their_table_are_refused_by_name() -> None:
    table = partitions_of(HIVE, [partition(), partition(values=["x"], location="/q")])
    assert table.to_pydict() == {"values": [["2026-01-01"], ["x"]], "location": ["/data/p", "/q"]}
    assert len(partitions_of(HIVE, [])) == 0
    with pytest.raises(
        UnreadableTableError, match=r"partition ds=2026-01-01 is read by .*OrcSerde"
    ):
        partitions_of(HIVE, [partition(serde=ORC)])
    text = replace(HIVE, serde=LAZY, input_format=TEXT_INPUT)
    same = partition(serde=LAZY, input_format=TEXT_INPUT, options={"serialization.format": "9"})
    assert len(partitions_of(text, [same])) == 1
    with pytest.raises(UnreadableTableError, match="SerDe properties of its partition"):
        partitions_of(text, [replace(same, options={"field.delim": ";"})])
    # Spark reads all partitions of its own tables alike.
    assert len(partitions_of(SPARK, [partition(serde=ORC)])) == 1


@pytest.mark.parametrize(
    ("pattern", "name", "matches"),
    [
        ("sales.*", "sales.events", True),
        ("Sales.EVENTS", "sales.Events", True),
        ("sales.*", "sales2.events", False),
        ("*.e?ents", "a.events", True),
        ("sales.e", "sales.events", False),
    ],
)
def test_patterns_match_databases_and_tables(pattern: str, name: str, matches: bool) -> None:
    assert matching([pattern_of(pattern)], *name.split(".")) is matches


@pytest.mark.parametrize(
    ("changes", "options"),
    [
        ({"serde": ORC, "properties": {"orc.force.positional.evolution": "true"}}, "orc.force"),
        (
            {"serde": LAZY, "input_format": TEXT_INPUT, "properties": {"field.delim": ";"}},
            "field.delim",
        ),
        (
            {"serde": LAZY, "input_format": TEXT_INPUT, "properties": {"timestamp.formats": "y"}},
            "timestamp.formats",
        ),
        (
            {
                "serde": LAZY,
                "input_format": TEXT_INPUT,
                "options": {"serialization.format": ","},
            },
            "serialization.format",
        ),
        ({"properties": {"int96RebaseMode": "LEGACY"}}, "int96RebaseMode"),
    ],
)
def test_properties_that_change_rows_are_passed_on(changes: dict[str, Any], options: str) -> None:
    found = definition_of(replace(HIVE, schema=schema(id="long", ds="string"), **changes)).fields

    assert any(name.startswith(options) for name in found["format_options"])


@pytest.mark.parametrize(
    "properties",
    [
        {"avro.schema.url": "file:/s"},
        {"avro.schema.literal": '{"fields": [{"name": "a", "default": 1}]}'},
        {"avro.schema.literal": '{"fields": [{"name": "a", "aliases": ["b"]}]}'},
    ],
)
def test_schemas_of_avro_that_change_rows_refuse_the_table(properties: dict[str, str]) -> None:
    with pytest.raises(UnreadableTableError, match=r"avro\.schema\.url or avro\.schema\.literal"):
        definition_of(replace(HIVE, serde=AVRO, properties=properties))


def test_one_property_with_two_values_refuses_the_table() -> None:
    entry = replace(HIVE, serde=LAZY, input_format=TEXT_INPUT, options={"field.delim": ","})

    with pytest.raises(UnreadableTableError, match=r"table property field\.delim differs"):
        definition_of(replace(entry, properties={"field.delim": ";"}))


def _with_metadata(metadata: dict[str, Any]) -> str:
    found = json.loads(schema(id="long", c="integer", ds="string"))
    found["fields"][1]["metadata"] = metadata
    return json.dumps(found)


def test_only_defaults_of_rows_that_exist_are_kept() -> None:
    entry = replace(SPARK, schema=_with_metadata({"EXISTS_DEFAULT": "7", "comment": "x"}))
    assert definition_of(entry).fields["columns"][1]["default"] == "7"

    for metadata in ({"CURRENT_DEFAULT": "7"}, {"EXISTS_DEFAULT": "NULL"}, {"comment": "x"}):
        entry = replace(SPARK, schema=_with_metadata(metadata))
        assert "default" not in definition_of(entry).fields["columns"][1]
    avro = replace(SPARK, provider="avro", schema=_with_metadata({"EXISTS_DEFAULT": "7"}))
    with pytest.raises(UnreadableTableError, match="column 'c' has the default 7"):
        definition_of(avro)


def test_a_collation_refuses_the_table_whichever_spark_reads_the_catalog() -> None:
    entry = replace(SPARK, schema=_with_metadata({"__COLLATIONS": {"c": "icu.UNICODE_CI"}}))

    with pytest.raises(UnreadableTableError, match="column 'c' has a collation"):
        definition_of(entry)
