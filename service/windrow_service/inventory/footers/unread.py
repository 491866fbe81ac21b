"""Files of formats without footers: their columns are declared, and their rows unknown."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.types as pt

from windrow_core.files.chunks import FooterGroup, unread_rows
from windrow_core.files.formats import FileFormat
from windrow_core.files.schema import FileSchema
from windrow_service.inventory.errors import TextColumnsError

_TEXT = pa.schema([("value", pa.string())])


def unread_schema(
    file_format: FileFormat, options: Mapping[str, str], declared: pa.Schema | None
) -> pa.Schema:
    """Return the data columns of a table whose files are not read.

    Args:
        file_format: Format of the table.
        options: Options of the format; a SerDe of Hive divides lines of text into columns.
        declared: The table's declared data columns; only text may lack them.
    """
    schema = _TEXT if declared is None else declared
    is_line = not file_format.must_be_told(options)
    if is_line and not (len(schema) == 1 and pt.is_string(schema[0].type)):
        raise TextColumnsError(tuple(schema.names))
    return schema


def unread(schema: pa.Schema, count: int) -> list[FooterGroup]:
    """Return the little that is known about files that are not read, in the form of footers.

    Args:
        schema: Columns of the files.
        count: Number of files.
    """
    return [FooterGroup(FileSchema(schema, ""), pa.schema([]), unread_rows(range(count)))]
