"""Read a Delta table's columns from its metadata, and check the features that readers need."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from windrow_core.files.file_fields import COLUMN_ID, FIELD_ID, NAMES_IN_FILES
from windrow_core.files.limits import TooWideError, refuse_deep, refuse_wide_json
from windrow_core.files.types import MAX_DECIMAL_PRECISION, arrow_types
from windrow_service.delta.errors import DeltaFeatureError, DeltaLogError

# Enough for a table with 20,000 columns.
_MAX_SCHEMA_CHARACTERS = 2**24

_PRIMITIVES = arrow_types("json")
_DECIMAL = re.compile(r"decimal\(\s*([0-9]{1,2})\s*,\s*(-?[0-9]{1,2})\s*\)")
_TEXT = re.compile(r"(?:var)?char\([0-9]+\)")

# The features that are known here, by the names that tables for readers of version 3 use. Files of
# widened columns hold the narrower types, as files of other tables may, too.
_KNOWN_FEATURES = frozenset(
    {
        "columnMapping",
        "deletionVectors",
        "timestampNtz",
        "typeWidening",
        "typeWidening-preview",
        "v2Checkpoint",
        "vacuumProtocolCheck",
    }
)
_FEATURES_VERSION = 3
_MAPPING_VERSION = 2
MAPPING_MODE = "delta.columnMapping.mode"
_MAPPING_ID = "delta.columnMapping.id"
_MAPPING_NAME = "delta.columnMapping.physicalName"
_TYPE_CHANGES = "delta.typeChanges"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The columns of one version of a table.

    Attributes:
        data: Columns in the files. If a field is found there by another name, or by id, its
            metadata says so.
        partition: Partition columns, in the order of the table's partitions.
        log_names: The log's name of each column of both, for partition values and statistics.
        widened: Data columns that some files may hold in a narrower type, in lower case.
    """

    data: pa.Schema
    partition: pa.Schema
    log_names: Mapping[str, str]
    widened: tuple[str, ...]


def refuse_unknown(location: str, protocol: Mapping[str, Any]) -> None:
    """Refuse a table that needs readers to know a feature that is not known here."""
    version = protocol.get("minReaderVersion")
    if version is None:
        raise DeltaLogError(
            location, "has a log that does not say which readers it needs: restore it"
        )
    if version > _FEATURES_VERSION:
        raise DeltaFeatureError(location, f"version {version} of its protocol")
    if version < _FEATURES_VERSION:
        return
    features = protocol.get("readerFeatures")
    if features is None:
        raise DeltaLogError(
            location,
            "has a log that does not list the features it needs readers to know: restore it",
        )
    unknown = sorted({str(feature) for feature in features} - _KNOWN_FEATURES)
    if unknown:
        names = ", ".join(repr(feature[:60]) for feature in unknown[:5])
        raise DeltaFeatureError(location, f"the feature{'s' * (len(unknown) > 1)} {names}")


def _mapping_mode(
    location: str, protocol: Mapping[str, Any], configuration: Mapping[str, Any]
) -> str:
    version = protocol["minReaderVersion"]
    features = protocol.get("readerFeatures") or ()
    is_mapped = version == _MAPPING_VERSION or "columnMapping" in features
    mode = (configuration.get(MAPPING_MODE) or "none") if is_mapped else "none"
    if mode not in ("none", "name", "id"):
        raise DeltaFeatureError(location, f"column mapping by {str(mode)[:60]!r}")
    return str(mode)


def shape_of(
    location: str, protocol: Mapping[str, Any], metadata: Mapping[str, Any], max_fields: int
) -> Shape:
    """Return the columns of a table.

    Args:
        location: Location of the table, for messages.
        protocol: The log's last `protocol`.
        metadata: The log's last `metaData`.
        max_fields: Most fields that it may have.
    """
    text = metadata.get("schemaString")
    if not isinstance(text, str) or len(text) > _MAX_SCHEMA_CHARACTERS:
        raise _damaged(location, "no schema of a reasonable length")
    try:
        refuse_wide_json(text.encode(errors="replace"), max_fields)
        root = json.loads(text)
        # Escapes may stand for halves of characters.
        json.dumps(root, ensure_ascii=False).encode()
    except TooWideError as error:
        raise DeltaLogError(location, f"has {error}") from error
    except (ValueError, RecursionError) as error:
        raise _damaged(location, "a schema that is not JSON in Unicode") from error
    provider = (metadata.get("format") or {}).get("provider", "parquet")
    if provider != "parquet":
        raise DeltaFeatureError(location, f"files of format {str(provider)[:60]!r}")
    reader = _SchemaReader(
        location, _mapping_mode(location, protocol, metadata.get("configuration") or {})
    )
    fields = reader.fields(root, 0)
    by_name = {field.name: field for field in fields}
    if len({name.lower() for name in by_name}) < len(fields):
        raise _damaged(location, "two columns of one name")
    partition_names = metadata.get("partitionColumns") or []
    if any(name not in by_name for name in partition_names):
        raise _damaged(location, "a partition column that its schema lacks")
    if len(set(partition_names)) < len(partition_names):
        raise _damaged(location, "a partition column twice")
    partition = [by_name[name].remove_metadata() for name in partition_names]
    for field in partition:
        if pa.types.is_nested(field.type) or pa.types.is_null(field.type):
            raise _damaged(location, f"a partition column of type {field.type}")
    return Shape(
        data=pa.schema([field for field in fields if field.name not in partition_names]),
        partition=pa.schema(partition),
        log_names=reader.log_names(root),
        widened=tuple(name.lower() for name in reader.widened(root)),
    )


class _SchemaReader:
    def __init__(self, location: str, mode: str) -> None:
        self._location = location
        self._mode = mode

    def fields(self, struct: Any, depth: int) -> list[pa.Field]:
        """Return the fields of a struct."""
        if not isinstance(struct, dict) or struct.get("type") != "struct":
            raise _damaged(self._location, "a schema that is not a struct")
        columns = []
        for field in _listed(struct.get("fields")):
            name = field.get("name")
            if not isinstance(name, str) or not name:
                raise _damaged(self._location, "a column without a name")
            type_ = self._type(field.get("type"), name, depth)
            columns.append(pa.field(name, type_, metadata=self._found_by(field, name)))
        return columns

    def log_names(self, root: Any) -> dict[str, str]:
        """Return the log's name of each column."""
        names = {}
        for field in _listed(root.get("fields")):
            name = str(field["name"])
            names[name] = str(_metadata(field)[_MAPPING_NAME]) if self._mode != "none" else name
        return names

    def widened(self, root: Any) -> list[str]:
        """Return the columns whose type, or that of a field in them, was once narrower."""
        return [
            field["name"]
            for field in _listed(root.get("fields"))
            if _TYPE_CHANGES in json.dumps(field)
        ]

    def _found_by(self, field: Mapping[str, Any], name: str) -> dict[bytes, bytes] | None:
        if self._mode == "none":
            return None
        metadata = _metadata(field)
        number, physical_name = metadata.get(_MAPPING_ID), metadata.get(_MAPPING_NAME)
        if not isinstance(physical_name, str) or not physical_name or type(number) is not int:
            raise _damaged(self._location, f"no name or id in its files for column {name[:60]!r}")
        key = COLUMN_ID if self._mode == "name" else FIELD_ID
        return {
            NAMES_IN_FILES: json.dumps([physical_name]).encode(),
            key: str(number).encode(),
        }

    def _type(self, type_: Any, column: str, depth: int) -> pa.DataType:
        if isinstance(type_, str):
            return self._primitive(type_, column)
        if not isinstance(type_, dict):
            raise _damaged(self._location, f"no type for column {column[:60]!r}")
        try:
            refuse_deep(depth)
        except TooWideError as error:
            raise DeltaLogError(self._location, f"has {error}") from error
        kind = type_.get("type")
        if kind == "struct":
            return pa.struct(self.fields(type_, depth + 1))
        if kind == "array":
            return pa.list_(self._type(type_.get("elementType"), column, depth + 1))
        if kind == "map":
            key = self._type(type_.get("keyType"), column, depth + 1)
            if pa.types.is_null(key):
                raise _damaged(self._location, f"a map without keys in column {column[:60]!r}")
            return pa.map_(key, self._type(type_.get("valueType"), column, depth + 1))
        raise DeltaFeatureError(
            self._location, f"the type {str(kind)[:60]!r} of column {column[:60]!r}"
        )

    def _primitive(self, name: str, column: str) -> pa.DataType:
        if (plain := _PRIMITIVES.get(name)) is not None:
            return plain
        if _TEXT.fullmatch(name):
            return pa.string()
        if name == "decimal":
            return pa.decimal128(10, 0)
        if (match := _DECIMAL.fullmatch(name)) is not None:
            precision, scale = int(match[1]), int(match[2])
            if 1 <= precision <= MAX_DECIMAL_PRECISION and 0 <= scale <= precision:
                return pa.decimal128(precision, scale)
        raise DeltaFeatureError(self._location, f"the type {name[:60]!r} of column {column[:60]!r}")


def _listed(fields: Any) -> list[dict[str, Any]]:
    if not isinstance(fields, list):
        return []
    return [field for field in fields if isinstance(field, dict)]


def _metadata(field: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata = field.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _damaged(location: str, what: str) -> DeltaLogError:
    return DeltaLogError(location, f"is damaged: its log has {what}; restore it")
