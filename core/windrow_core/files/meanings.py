"""What columns mean beyond their layout: a variant is bytes to Arrow, an interval a number.

If they were read as such, they would compare and print differently from Spark.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from windrow_core.files.types import arrow_types

# Where Spark writes the schema of a DataFrame, and where it looks for one first.
_SPARK_KEY = b"org.apache.spark.sql.parquet.row.metadata"

VARIANT = "variant"
# In a column's metadata: its type in a catalog, where that contains CHAR or VARCHAR.
CHARS_KEY = "__CHAR_VARCHAR_TYPE_STRING"

# Files of one writer repeat the same schema. Not `lru_cache`, which cannot be pickled by value.
_remembered: dict[bytes, Mapping[str, str]] = {}
_MAX_REMEMBERED = 256

_ANNOTATED = {
    "GEOMETRY": "geometry",
    "GEOGRAPHY": "geography",
    "INTERVAL": "interval",
    "UNDEFINED": "unknown",
}

_PLAIN = re.compile(
    "|".join(arrow_types("json")) + r"|null|decimal(\(\d+, *-?\d+\))?|varchar\(\d+\)"
)
_VARIANT_GROUP = re.compile(
    r" +(?:required|optional|repeated) group field_id=-?\d+ .* \(Variant\b.*\) \{"
)
_COLUMN = re.compile(r"  (?:required|optional|repeated) \w")


def told_by_spark(metadata: Any) -> Mapping[str, str]:
    """Return the meanings of columns in a footer's Spark schema; nothing if there is none.

    Args:
        metadata: A `pyarrow.parquet.FileMetaData`.
    """
    text = (metadata.metadata or {}).get(_SPARK_KEY)
    if text is None:
        return {}
    if text not in _remembered:
        if len(_remembered) == _MAX_REMEMBERED:
            _remembered.clear()
        _remembered[text] = _told(text)
    return _remembered[text]


def beyond_layout(schema: Mapping[str, Any]) -> dict[str, str]:
    """Return the meanings of top-level columns in a Spark schema that go beyond their layout.

    Args:
        schema: The schema, as Spark writes it in JSON.
    """
    meanings = ((field["name"], _field_meaning(field)) for field in schema["fields"])
    return {name: meaning for name, meaning in meanings if meaning is not None}


def annotated(parquet: Any, columns: Sequence[int]) -> dict[int, str]:
    """Return the meanings of top-level columns in Parquet annotations that Arrow ignores.

    Args:
        parquet: A `pyarrow.parquet.ParquetSchema`.
        columns: For each of its leaves, the number of the top-level column that it is part of.
    """
    meanings = {}
    for leaf, column in enumerate(columns):
        if (meaning := _annotation(parquet.column(leaf))) is not None:
            meanings[column] = meaning
    # Only the printed schema tells what a group is.
    text = str(parquet)
    if "(Variant" in text:
        column = -1
        for line in text.splitlines():
            column += _COLUMN.match(line) is not None
            if _VARIANT_GROUP.fullmatch(line) is not None:
                meanings[column] = VARIANT
    return meanings


def _annotation(leaf: Any) -> str | None:
    type_ = leaf.logical_type.type
    # There is no newer annotation for intervals: writers mark them as unknown, and Arrow then takes
    # the values for nulls.
    if type_ == "UNKNOWN" and leaf.physical_type == "FIXED_LEN_BYTE_ARRAY":
        return "interval"
    return _ANNOTATED.get(type_)


def _told(text: bytes) -> Mapping[str, str]:
    try:
        return beyond_layout(json.loads(text))
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        # Spark, too, ignores a schema that it cannot read.
        return {}


def _field_meaning(field: Mapping[str, Any]) -> str | None:
    metadata = field.get("metadata") or {}
    if collations := metadata.get("__COLLATIONS"):
        return f"string collate {next(iter(collations.values())).rpartition('.')[2]}"
    # Spark pads CHAR values that it reads, and those that it compares them with.
    if char := re.search(r"\bchar\(\d+\)", metadata.get(CHARS_KEY, "")):
        return char[0]
    return next(_meanings(field["type"]), None)


def _meanings(type_: Any) -> Iterator[str]:
    if isinstance(type_, str):
        if _PLAIN.fullmatch(type_) is None:
            yield type_
    elif type_["type"] == "array":
        yield from _meanings(type_["elementType"])
    elif type_["type"] == "map":
        yield from _meanings(type_["keyType"])
        yield from _meanings(type_["valueType"])
    elif type_["type"] == "struct":
        for field in type_["fields"]:
            if (meaning := _field_meaning(field)) is not None:
                yield meaning
    elif type_["type"] == "udt":
        yield f"{type_.get('pyClass') or type_.get('class')} (user-defined)"
    else:
        yield str(type_["type"])
