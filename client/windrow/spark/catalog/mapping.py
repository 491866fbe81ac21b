"""Map a table of Spark's catalog to a table definition, or say why it cannot be read."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.types as pt
from pyspark.sql.types import StructType

from windrow.files.types import spark_type
from windrow.spark.arrow_types import arrow_schema
from windrow.spark.catalog.entries import CatalogEntry, CatalogPartition
from windrow.spark.errors import UnsupportedTypeError

# Metadata key under which Spark keeps the declared type of char and varchar columns.
_DECLARED = "__CHAR_VARCHAR_TYPE_STRING"
_CHAR = re.compile(r"\bchar\(")
_PARQUET_SERDES = (
    "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe",
    "parquet.hive.serde.ParquetHiveSerDe",
)
_ORC_SERDE = "org.apache.hadoop.hive.ql.io.orc.OrcSerde"
_AVRO_SERDE = "org.apache.hadoop.hive.serde2.avro.AvroSerDe"
_TEXT_SERDES = (
    "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe",
    "org.apache.hadoop.hive.serde2.OpenCSVSerde",
)
_TEXT_INPUT = "org.apache.hadoop.mapred.TextInputFormat"
_FORMATS = ("parquet", "orc", "avro", "csv", "json", "text")
_LOGGED = ("delta", "iceberg")
# Options of Spark and Hive that do not affect how files are read.
_IRRELEVANT = {
    "path",
    "serialization.format",
    "compression",
    "codec",
    "mergeschema",
    "inferschema",
    "quoteall",
    "escapequotes",
    "orc.compress",
    "parquet.compression",
}
# Properties of text tables that may be set on the table instead of on its SerDe.
_OF_TABLE = ("skip.header.line.count", "skip.footer.line.count", "serialization.null.format")


class UnreadableTableError(Exception):
    """A table of the catalog cannot be registered; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mapped:
    """A table of the catalog as a table definition.

    Attributes:
        fields: Fields of its `TableDefinition`.
        notes: What is left out, as sentences.
    """

    fields: dict[str, Any]
    notes: tuple[str, ...] = ()


def definition_of(entry: CatalogEntry) -> Mapped:
    """Return the definition of a table of the catalog.

    Raises:
        UnreadableTableError: It is a view, it has no location, or its format or the type of a
            column is not read.
    """
    if entry.error:
        raise UnreadableTableError(f"the catalog cannot describe it: {_first_line(entry.error)}")
    if entry.kind == "VIEW":
        raise UnreadableTableError(
            "it is a view, which has no files: import the tables it is made of"
        )
    if entry.location is None:
        raise UnreadableTableError("the catalog has no location for it")
    location = _as_registered(entry.location)
    logged = _logged(entry)
    if logged is not None:
        fields: dict[str, Any] = {"location": location, "format": logged}
        if logged == "iceberg" and "metadata_location" in entry.properties:
            # Only the metastore knows which metadata file in the folder is current.
            newest = _as_registered(entry.properties["metadata_location"])
            fields["format_options"] = {"metadata": newest}
        return Mapped(fields=fields)
    format_, options = _format_of(entry)
    fields = {"location": location, "format": format_}
    if options:
        fields["format_options"] = options
    fields |= _columns(entry)
    notes = []
    transactional = _transactional(entry, format_)
    if transactional:
        fields["transactional"] = transactional
        notes.append("all writes on disk are seen, unless a refresh is given valid_write_ids")
    if format_ == "avro" and entry.serde == _AVRO_SERDE:
        _require_alike_in_avro(entry)
    if entry.bucket_count:
        if _is_sparks(entry):
            columns = list(entry.bucket_columns)
            fields["bucket_spec"] = {"columns": columns, "count": entry.bucket_count}
            fields["sort_columns"] = [{"name": name} for name in entry.sort_columns]
        else:
            notes.append(
                f"its {entry.bucket_count} buckets are left out, since Hive's hash is not Spark's"
            )
    fields["listed_partitions"] = bool(entry.partition_columns) and entry.lists_partitions
    return Mapped(fields=fields, notes=tuple(notes))


def partitions_of(entry: CatalogEntry, partitions: Sequence[CatalogPartition]) -> pa.Table:
    """Return a table's partitions as `set_partitions` takes them.

    Raises:
        UnreadableTableError: A partition has no location, or is not read in the way of its table.
    """
    options = _read_options(entry.options)
    for one in partitions:
        named = _named(entry, one.values)
        if one.location is None:
            raise UnreadableTableError(f"the catalog has no location for its partition {named}")
        if _is_sparks(entry):
            continue
        if (one.serde, one.input_format) != (entry.serde, entry.input_format):
            raise UnreadableTableError(
                f"its partition {named} is read by {one.serde or one.input_format}, and the table by "
                f"{entry.serde or entry.input_format}: rewrite the partition"
            )
        if reads_columns_of_partitions(entry) and _read_options(one.options) != options:
            raise UnreadableTableError(
                f"the SerDe properties of its partition {named} differ from the table's: set the "
                "same for both"
            )
    return pa.table(
        {
            "values": pa.array([one.values for one in partitions], pa.list_(pa.string())),
            "location": pa.array([one.location for one in partitions], pa.string()),
        }
    )


def reads_columns_of_partitions(entry: CatalogEntry) -> bool:
    """Tell whether each partition is read by its own columns, as Spark reads Hive's text tables."""
    return entry.serde in _TEXT_SERDES and not _is_sparks(entry)


def refuse_other_columns(entry: CatalogEntry, values: Sequence[str]) -> None:
    """Refuse a table because the columns of the partition with these values differ.

    Raises:
        UnreadableTableError: Always.
    """
    raise UnreadableTableError(
        f"the columns of its partition {_named(entry, values)} differ from the table's, and its "
        "lines are divided by them: `ALTER TABLE … CASCADE` gives both the same"
    )


def _named(entry: CatalogEntry, values: Sequence[str]) -> str:
    pairs = zip(entry.partition_columns, values, strict=True)
    return ", ".join(f"{name}={value}" for name, value in pairs)


def _as_registered(location: str) -> str:
    """Return a location as the coordinator writes it, so that equal locations compare equal."""
    return re.sub("^s3a:", "s3:", re.sub("^file:(//)?(?=/)", "", location))


def _is_sparks(entry: CatalogEntry) -> bool:
    """Tell whether Spark wrote the table as one of its own data sources."""
    return (entry.provider or "hive").lower() != "hive"


def _logged(entry: CatalogEntry) -> str | None:
    named = (entry.provider or "").lower(), entry.properties.get("table_type", "").lower()
    return next((one for one in _LOGGED if one in named), None)


def _format_of(entry: CatalogEntry) -> tuple[str, dict[str, str]]:
    if _is_sparks(entry):
        provider = str(entry.provider).lower()
        # Older versions of Spark wrote the names of its classes.
        short = provider.rpartition("datasources.")[2].partition(".")[0] or provider
        if short not in _FORMATS:
            raise UnreadableTableError(f"its data source {entry.provider!r} is not read")
        return short, _read_options(entry.options)
    if entry.serde in _PARQUET_SERDES:
        return "parquet", {}
    if entry.serde == _ORC_SERDE:
        return "orc", {}
    if entry.serde == _AVRO_SERDE:
        return "avro", {}
    if entry.serde in _TEXT_SERDES and entry.input_format == _TEXT_INPUT:
        options = _read_options(entry.options)
        more = {name: entry.properties[name] for name in _OF_TABLE if name in entry.properties}
        return "text", {"serde": str(entry.serde), **more, **options}
    what = f"SerDe {entry.serde}" if entry.serde else "storage handler"
    if entry.serde in _TEXT_SERDES:
        what = f"input format {entry.input_format}"
    raise UnreadableTableError(f"its {what} is not read")


def _read_options(options: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in options.items() if name.lower() not in _IRRELEVANT}


def _columns(entry: CatalogEntry) -> dict[str, Any]:
    schema = StructType.fromJson(json.loads(entry.schema))
    for field in schema:
        declared = (field.metadata or {}).get(_DECLARED) or field.dataType.simpleString()
        if _CHAR.search(declared):
            raise UnreadableTableError(
                f"its column {field.name!r} is {declared}, whose values Spark pads as it reads them: "
                "declare it as string"
            )
    try:
        held = arrow_schema(schema)
    except UnsupportedTypeError as error:
        raise UnreadableTableError(_first_line(str(error))) from error
    partition = list(entry.partition_columns)
    types = {field.name: spark_type(field.type) for field in held}
    return {
        "columns": [
            {"name": name, "type": type_} for name, type_ in types.items() if name not in partition
        ],
        "partition_columns": [{"name": name, "type": types[name]} for name in partition],
    }


def _transactional(entry: CatalogEntry, format_: str) -> str | None:
    if _is_sparks(entry) or entry.properties.get("transactional", "").lower() != "true":
        return None
    only_inserts = entry.properties.get("transactional_properties", "").lower() == "insert_only"
    if not only_inserts and format_ != "orc":
        raise UnreadableTableError(
            f"it is transactional with updates, but its format is {format_} instead of orc"
        )
    return "insert_only" if only_inserts else "full"


def _require_alike_in_avro(entry: CatalogEntry) -> None:
    """Refuse columns that Hive's Avro SerDe may read differently from Spark's own reader."""
    for field in arrow_schema(StructType.fromJson(json.loads(entry.schema))):
        if not _is_plain(field.type):
            raise UnreadableTableError(
                f"its column {field.name!r} is {spark_type(field.type)}, which Hive's Avro SerDe "
                "may read differently from Spark's reader"
            )


def _is_plain(type_: pa.DataType) -> bool:
    if pt.is_list(type_):
        return _is_plain(type_.value_type)
    if pt.is_struct(type_):
        return all(_is_plain(field.type) for field in type_)
    return any(
        test(type_)
        for test in (pt.is_boolean, pt.is_int32, pt.is_int64, pt.is_floating, pt.is_string)
    )


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0][:500]
