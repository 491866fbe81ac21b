"""Map a table of Spark's catalog to a table definition, or say why it cannot be read."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.types as pt
from pyspark.sql.types import (
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
    TimestampType,
)

from windrow_core.files.formats import FORMATS
from windrow_core.files.schemes import with_canonical_scheme
from windrow_core.files.types import spark_type
from windrow_core.kinds.choice import OWN_KINDS
from windrow_core.kinds.kind import TableKind
from windrow_spark.arrow_types import arrow_schema
from windrow_spark.catalog.entries import CatalogEntry, CatalogPartition, NotConstantError
from windrow_spark.catalog.writer_options import is_of_writers
from windrow_spark.defaults import EXISTS_DEFAULT, as_json
from windrow_spark.errors import UnsupportedTypeError

ValueOf: TypeAlias = Callable[[str, str], Any]

# Metadata key under which Spark keeps the declared type of char and varchar columns.
_DECLARED = "__CHAR_VARCHAR_TYPE_STRING"
# Metadata key under which Spark keeps the collations of a column, also those within it.
_COLLATIONS = "__COLLATIONS"
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
# Options of Spark and Hive that do not affect how files are read.
_IRRELEVANT = {
    "path",
    "serialization.format",
    "mergeschema",
    "inferschema",
    "quoteall",
    "escapequotes",
}
# Properties of text tables that may be set on the table instead of on its SerDe.
_OF_TEXT = frozenset(
    {
        "collection.delim",
        "escape.delim",
        "escapeChar",
        "field.delim",
        "line.delim",
        "mapkey.delim",
        "quoteChar",
        "separatorChar",
        "serialization.encoding",
        "serialization.last.column.takes.rest",
        "serialization.null.format",
        "skip.footer.line.count",
        "skip.header.line.count",
        "timestamp.formats",
    }
)
# What Spark's readers do with the files of Hive's tables, if a property of the table says so.
_OF_ORC = ("orc.force.positional.evolution",)
_OF_PARQUET = ("datetimeRebaseMode", "int96RebaseMode")
_AVRO_SCHEMA, _AVRO_SCHEMA_FILE = "avro.schema.literal", "avro.schema.url"
# `field.delim` if a table has none; this is the number of Hive's own separator.
_SEPARATOR, _HIVES_SEPARATOR = "serialization.format", "1"


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


def definition_of(entry: CatalogEntry, value_of: ValueOf) -> Mapped:
    """Return the definition of a table of the catalog.

    Args:
        entry: The table.
        value_of: Returns the value of a constant expression of SQL as a type.
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
    kind = _own_kind(entry)
    if kind is not None:
        fields: dict[str, Any] = {"location": location, "format": kind.noun}
        newest = entry.properties.get(kind.metadata_property or "")
        if newest is not None:
            fields["format_options"] = {"metadata": _as_registered(newest)}
        return Mapped(fields=fields)
    format_, options = _format_of(entry)
    fields = {"location": location, "format": format_}
    if options:
        fields["format_options"] = options
    fields |= _columns(entry, format_, value_of)
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
    """Return a table's partitions as `set_partitions` takes them."""
    options = _read_options(entry.options)
    for one in partitions:
        values = _named(entry, one.values)
        if one.location is None:
            raise UnreadableTableError(f"the catalog has no location for its partition {values}")
        if _is_sparks(entry):
            continue
        if (one.serde, one.input_format) != (entry.serde, entry.input_format):
            raise UnreadableTableError(
                f"its partition {values} is read by {one.serde or one.input_format}, and the table by "
                f"{entry.serde or entry.input_format}: rewrite the partition"
            )
        if reads_columns_of_partitions(entry) and _read_options(one.options) != options:
            raise UnreadableTableError(
                f"the SerDe properties of its partition {values} differ from the table's: set the "
                "same for both"
            )
    return pa.table(
        {
            "values": pa.array([one.values for one in partitions], pa.list_(pa.string())),
            "location": pa.array([one.location for one in partitions], pa.string()),
        }
    )


def reads_columns_of_partitions(entry: CatalogEntry) -> bool:
    """Return whether each partition is read by its own columns, as Spark reads Hive's text tables."""
    return entry.serde in _TEXT_SERDES and not _is_sparks(entry)


def refuse_other_columns(entry: CatalogEntry, values: Sequence[str]) -> None:
    """Refuse a table because the columns of the partition with these values differ."""
    raise UnreadableTableError(
        f"the columns of its partition {_named(entry, values)} differ from the table's, and its "
        "lines are divided by them: `ALTER TABLE … CASCADE` gives both the same"
    )


def _named(entry: CatalogEntry, values: Sequence[str]) -> str:
    pairs = zip(entry.partition_columns, values, strict=True)
    return ", ".join(f"{name}={value}" for name, value in pairs)


def _as_registered(location: str) -> str:
    """Return a location as the coordinator writes it, so that equal locations compare equal."""
    return with_canonical_scheme(re.sub("^file:(//)?(?=/)", "", location))


def _is_sparks(entry: CatalogEntry) -> bool:
    """Return whether Spark wrote the table as one of its own data sources."""
    return (entry.provider or "hive").lower() != "hive"


def _own_kind(entry: CatalogEntry) -> TableKind | None:
    hints = (entry.provider or "").lower(), entry.properties.get("table_type", "").lower()
    return next((kind for name, kind in OWN_KINDS.items() if name in hints), None)


def _format_of(entry: CatalogEntry) -> tuple[str, dict[str, str]]:
    if _is_sparks(entry):
        provider = str(entry.provider).lower()
        # Older versions of Spark wrote the names of its classes.
        short = provider.rpartition("datasources.")[2].partition(".")[0] or provider
        if short not in FORMATS:
            raise UnreadableTableError(f"its data source {entry.provider!r} is not read")
        return short, _read_options(entry.options)
    if entry.serde in _PARQUET_SERDES:
        return "parquet", _passed_on(entry, _OF_PARQUET)
    if entry.serde == _ORC_SERDE:
        return "orc", _passed_on(entry, _OF_ORC)
    if entry.serde == _AVRO_SERDE:
        return "avro", {}
    if entry.serde in _TEXT_SERDES and entry.input_format == _TEXT_INPUT:
        return "text", {"serde": str(entry.serde), **_text_options(entry)}
    what = f"SerDe {entry.serde}" if entry.serde else "storage handler"
    if entry.serde in _TEXT_SERDES:
        what = f"input format {entry.input_format}"
    raise UnreadableTableError(f"its {what} is not read")


def _passed_on(entry: CatalogEntry, names: Sequence[str]) -> dict[str, str]:
    properties = {**entry.properties, **entry.options}
    return {name: properties[name] for name in names if name in properties}


def _text_options(entry: CatalogEntry) -> dict[str, str]:
    """Return the properties of a SerDe of text, which Hive also takes from the table's."""
    options = _read_options(entry.options)
    separator = entry.options.get(_SEPARATOR, _HIVES_SEPARATOR)
    if separator != _HIVES_SEPARATOR and entry.serde == _TEXT_SERDES[0]:
        options[_SEPARATOR] = separator
    for name in sorted(_OF_TEXT & entry.properties.keys()):
        value = entry.properties[name]
        if options.setdefault(name, value) != value:
            raise UnreadableTableError(
                f"its table property {name} differs from that of its SerDe: set the same for both"
            )
    return options


def _read_options(options: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in options.items()
        if name.lower() not in _IRRELEVANT and not is_of_writers(name)
    }


def _columns(entry: CatalogEntry, format_: str, value_of: ValueOf) -> dict[str, Any]:
    if _COLLATIONS in entry.schema:
        _refuse_collations(json.loads(entry.schema))
    schema = StructType.fromJson(json.loads(entry.schema))
    for field in schema:
        type_text = (field.metadata or {}).get(_DECLARED) or field.dataType.simpleString()
        if _CHAR.search(type_text):
            raise UnreadableTableError(
                f"its column {field.name!r} is {type_text}, whose values Spark pads as it reads them: "
                "declare it as string"
            )
    try:
        arrow_fields = arrow_schema(schema)
    except UnsupportedTypeError as error:
        raise UnreadableTableError(_first_line(str(error))) from error
    partition = list(entry.partition_columns)
    types = {field.name: spark_type(field.type) for field in arrow_fields}
    data = [field for field in schema if field.name not in partition]
    default = partial(default_of, format_=format_, value_of=value_of, is_sparks=_is_sparks(entry))
    return {
        "columns": [_column(field, types[field.name], default(field)) for field in data],
        "partition_columns": [{"name": name, "type": types[name]} for name in partition],
    }


def _column(field: StructField, type_: str, default: str | None) -> dict[str, str]:
    column = {"name": field.name, "type": type_}
    return column if default is None else {**column, "default": default}


def default_of(
    field: StructField, format_: str, value_of: ValueOf, *, is_sparks: bool = True
) -> str | None:
    """Return the default, as JSON, that Spark gives a column in rows of files that lack it.

    Args:
        field: The column.
        format_: The format of the files.
        value_of: As in `definition_of`.
        is_sparks: Whether the table is one of Spark's own.

    Raises:
        UnreadableTableError: It cannot be told, or is not read.
    """
    if _has_default_within(field.dataType):
        raise UnreadableTableError(
            f"its column {field.name!r} has a default within, which is not read: rewrite the table"
        )
    sql = (field.metadata or {}).get(EXISTS_DEFAULT)
    if sql is None:
        return None
    type_ = field.dataType.simpleString()
    try:
        value = value_of(sql, type_)
    except NotConstantError as error:
        raise UnreadableTableError(
            f"the default of its column {field.name!r} cannot be told ({error}): correct the "
            "catalog's entry"
        ) from error
    if value is None:
        return None
    default = as_json(value)
    # What a timestamp's text means depends on the session that reads it.
    is_fixed = default is not None and not isinstance(field.dataType, TimestampType)
    if not (is_fixed and is_sparks and FORMATS[format_].has_defaults):
        raise UnreadableTableError(
            f"its column {field.name!r} has the default {sql} in files that lack it, which is not "
            f"read for {type_} in {format_}: rewrite the table, so that all files have the column"
        )
    return default


def _has_default_within(type_: DataType) -> bool:
    if isinstance(type_, ArrayType):
        return _has_default_within(type_.elementType)
    if isinstance(type_, MapType):
        return _has_default_within(type_.keyType) or _has_default_within(type_.valueType)
    return isinstance(type_, StructType) and any(
        EXISTS_DEFAULT in (field.metadata or {}) or _has_default_within(field.dataType)
        for field in type_
    )


def _refuse_collations(schema: Mapping[str, Any]) -> None:
    """Refuse columns with collations, which older versions of PySpark do not know."""
    for field in schema["fields"]:
        text = json.dumps(field)
        if _COLLATIONS in text:
            raise UnreadableTableError(
                f"its column {field['name']!r} has a collation, by which Spark compares its texts: "
                "declare it as string without a collation"
            )


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
    properties = {**entry.properties, **entry.options}
    literal = properties.get(_AVRO_SCHEMA, "")
    if _AVRO_SCHEMA_FILE in properties or '"aliases"' in literal or _has_avro_default(literal):
        raise UnreadableTableError(
            f"{_AVRO_SCHEMA_FILE} or {_AVRO_SCHEMA} may give its columns defaults or other names "
            "in files, which Spark's own reader does not see: create the table with columns"
        )
    for field in arrow_schema(StructType.fromJson(json.loads(entry.schema))):
        if not _is_plain(field.type):
            raise UnreadableTableError(
                f"its column {field.name!r} is {spark_type(field.type)}, which Hive's Avro SerDe "
                "may read differently from Spark's reader"
            )


def _has_avro_default(literal: str) -> bool:
    """Return whether a schema of Avro may state a default other than null."""
    defaults = re.findall(r'"default"\s*:\s*(.)', literal)
    return any(one != "n" for one in defaults)


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
