"""Column types as Spark SQL writes them, read."""

from __future__ import annotations

import pyarrow as pa


def arrow_type(text: str) -> pa.DataType:
    """Return the Arrow type of a type as Spark SQL writes it.

    `varchar` and `char` are read as strings, `timestamp` is in UTC, all with microseconds.

    Raises:
        UnknownTypeError: The text is no such type.
    """
    # Not at the top: sqlglot takes long to import, and who reads footers never needs it.
    from windrow_service.inventory.type_parser import parse_type

    return parse_type(text)
