"""Columns of CSV and JSON files as Spark infers them, without Spark; what is uncertain is refused."""

from __future__ import annotations

from collections.abc import Mapping

from windrow.inferring import csv_types, json_types
from windrow.inferring.files import FileLines, UnsureError, lines_of, listed_files
from windrow_calls.errors import InvalidArgumentError
from windrow_core.files.limits import MAX_FIELDS, TooWideError

__all__ = ["infer_columns"]

_WAYS = {"csv": csv_types.columns_of, "json": json_types.columns_of}


def infer_columns(
    location: str, format: str, format_options: Mapping[str, str], max_fields: int = MAX_FIELDS
) -> dict[str, str]:
    """Return names and types of the columns that Spark infers; all rows are read.

    Args:
        location: Absolute path of the table's folder, or its URI, as this process sees it.
        format: `csv` or `json`.
        format_options: As for `register_table`.
        max_fields: Most fields of all columns.

    Raises:
        InvalidArgumentError: The format has no columns to infer, or only Spark can tell which they
            are.
        LocationError: The folder cannot be listed.
    """
    way = _WAYS.get(format)
    if way is None:
        raise InvalidArgumentError(
            "format",
            f"columns of {format} are not inferred: leave --infer out, or name csv or json",
        )
    paths, folders = listed_files(location)
    if not paths:
        raise InvalidArgumentError("location", f"{location!r} holds no files to infer columns from")
    try:
        files = (FileLines(path, lines_of(location, path)) for path in paths)
        columns = way(files, format_options, max_fields)
    except UnsureError as error:
        raise InvalidArgumentError(
            "infer",
            f"{error}, so only Spark can tell: declare the columns, or use "
            "client.infer_columns(spark, …)",
        ) from None
    except TooWideError as error:
        raise InvalidArgumentError("infer", f"the table has {error}") from None
    return {name: type_ for name, type_ in columns.items() if name.lower() not in folders}
