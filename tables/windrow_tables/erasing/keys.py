"""Keys to erase, from files or from values in Python."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq

from windrow_calls.errors import InvalidArgumentError


def keys_in(file: str, column: str) -> pa.Array:
    """Return the keys in a file, nulls among them.

    Args:
        file: A CSV file with a header, or a Parquet file. CSV is read as text; empty fields are null.
        column: Their column; a file with one column may call it otherwise.

    Raises:
        InvalidArgumentError: There are none.
    """
    try:
        if file.lower().endswith((".parquet", ".pq")):
            names = pq.read_schema(file).names
            table = pq.read_table(file, columns=[_chosen(names, column)])
        else:
            with csv.open_csv(file) as reader:
                names = reader.schema.names
            options = csv.ConvertOptions(
                include_columns=[_chosen(names, column)],
                column_types=dict.fromkeys(names, pa.string()),
                strings_can_be_null=True,
                null_values=[""],
            )
            table = csv.read_csv(file, convert_options=options)
    except (OSError, pa.ArrowException) as error:
        reason = f"the keys in {file!r} cannot be read: {error}"
        raise InvalidArgumentError("from", reason) from error
    return _checked(table.column(0).combine_chunks(), Path(file).name)


def keys_of(values: Iterable[Any]) -> pa.Array:
    """Return keys that were given in Python, or in a column of Arrow."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if isinstance(values, str | bytes):
        raise InvalidArgumentError(
            "values", f"values are a list of keys, not {type(values).__name__}"
        )
    try:
        keys = values if isinstance(values, pa.Array) else pa.array(list(values))
    except (pa.ArrowException, TypeError) as error:
        raise InvalidArgumentError("values", "the values are not all of one kind") from error
    except OverflowError as error:
        reason = "a value has more than 64 bits: write it as text, or as a Decimal"
        raise InvalidArgumentError("values", reason) from error
    return _checked(keys, "values")


def _checked(keys: pa.Array, where: str) -> pa.Array:
    if len(keys) == keys.null_count:
        raise InvalidArgumentError("values", f"{where} has no key: give at least one")
    return keys


def _chosen(names: list[str], column: str) -> str:
    if column in names:
        return column
    if len(names) == 1:
        return names[0]
    columns = ", ".join(names[:10])
    raise InvalidArgumentError("from", f"it has no column {column!r}, but {columns}: name it so")
