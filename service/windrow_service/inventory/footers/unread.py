"""Files of formats that say nothing of themselves: their columns are declared, and rows unknown."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.types as pt

from windrow.files.chunks import FooterGroup, unread_rows
from windrow.files.schema import FileSchema
from windrow_service.inventory.errors import TextColumnsError

_TEXT = pa.schema([("value", pa.string())])


def unread_schema(
    table_format: str, options: Mapping[str, str], declared: pa.Schema | None
) -> pa.Schema:
    """Return the data columns of a table whose files are not read.

    Args:
        table_format: Its format.
        options: The format's; a SerDe of Hive's divides lines of text into columns.
        declared: Its declared columns without partition columns, which only text may lack.

    Raises:
        TextColumnsError: Text is declared to have other columns than one string.
    """
    schema = _TEXT if declared is None else declared
    is_line = table_format == "text" and "serde" not in options
    if is_line and not (len(schema) == 1 and pt.is_string(schema[0].type)):
        raise TextColumnsError(tuple(schema.names))
    return schema


def unread(schema: pa.Schema, count: int) -> list[FooterGroup]:
    """Return what is known of files that are not read, as of their footers.

    Args:
        schema: Their columns.
        count: How many there are.
    """
    return [FooterGroup(FileSchema(schema, ""), pa.schema([]), unread_rows(range(count)))]
