"""Convert partition values in the log of a Delta table from texts to values of their types."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from windrow_core.files.arrays import flat, make_struct
from windrow_core.files.partition_values import InvalidValueError, convert, describe_type
from windrow_core.files.types import TIMESTAMP, TIMESTAMP_NTZ
from windrow_service.delta.errors import DeltaLogError

_SHOWN_CHARACTERS = 60
# The form in which Spark writes moments, unless it is told to write them in UTC, ending in Z.
_BARE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?$"


def partition_values(
    location: str,
    texts: pa.StructArray,
    partition: pa.Schema,
    log_names: Mapping[str, str],
    time_zone: str | None = None,
) -> pa.StructArray:
    """Return the partition values of n files as a struct with a field per partition column.

    Args:
        location: Location of the table, for messages.
        texts: n structs with a field per partition column, by its name in the log.
        partition: The partition columns.
        log_names: The log's names of the partition columns.
        time_zone: Time zone of the sessions that wrote moments without one; None if not known.
    """
    columns = [
        _typed(location, field, pc.struct_field(texts, [log_names[field.name]]), time_zone)
        for field in partition
    ]
    return make_struct(columns, list(partition), len(texts))


def _typed(location: str, field: pa.Field, texts: pa.Array, time_zone: str | None) -> pa.Array:
    # Delta does not write empty strings: they mean null, even in columns of strings.
    texts = flat(pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts))
    if pt.is_string(field.type):
        return texts
    if pt.is_binary(field.type):
        return texts.cast(pa.binary())
    codes = texts.dictionary_encode()
    distinct = codes.dictionary
    if field.type == TIMESTAMP:
        distinct = _zoned(location, field.name, distinct, time_zone)
    try:
        return flat(convert(distinct, field.type).take(codes.indices))
    except InvalidValueError as error:
        value = codes.dictionary[error.index].as_py()[:_SHOWN_CHARACTERS]
        raise DeltaLogError(
            location,
            f"is damaged: its log gives partition column {field.name!r} the value {value!r}, which "
            f"is not a {describe_type(field.type)}; restore it",
        ) from error


def _zoned(location: str, column: str, texts: pa.Array, time_zone: str | None) -> pa.Array:
    """Return moments in UTC, with a `Z` at the end."""
    is_bare = pc.fill_null(pc.match_substring_regex(texts, _BARE), False)
    if not pc.any(is_bare).as_py():
        return texts
    if time_zone is None:
        value = texts[pc.index(is_bare, True).as_py()].as_py()
        raise DeltaLogError(
            location,
            f"has the value {value!r} in partition column {column!r}, and Spark reads it in the time "
            "zone of each session: register the table with the format option timeZone, such as UTC",
        )
    bare = pc.if_else(is_bare, texts, pa.scalar(None, pa.string()))
    try:
        moments = pc.assume_timezone(
            pc.cast(bare, TIMESTAMP_NTZ), time_zone, ambiguous="earliest", nonexistent="latest"
        )
    except pa.ArrowInvalid as error:
        raise DeltaLogError(
            location,
            f"has values in partition column {column!r} that are not moments in time zone "
            f"{time_zone!r}: correct the format option timeZone",
        ) from error
    utc = pc.strftime(pc.cast(moments, TIMESTAMP), "%Y-%m-%dT%H:%M:%SZ")
    return pc.if_else(is_bare, utc, texts)
