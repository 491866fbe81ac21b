"""Column types as Spark SQL writes them, read."""

from __future__ import annotations

from functools import lru_cache

import pyarrow as pa

# Longer ones, of structs, are seldom those of another column; keeping them takes memory.
_MAX_KEPT_CHARACTERS = 64


def arrow_type(text: str) -> pa.DataType:
    """Return the Arrow type of a type as Spark SQL writes it.

    `varchar` and `char` are read as strings, `timestamp` is in UTC, all with microseconds.

    Raises:
        UnknownTypeError: The text is no such type.
    """
    return _kept(text) if len(text) <= _MAX_KEPT_CHARACTERS else _parsed(text)


def _parsed(text: str) -> pa.DataType:
    # Not at the top: sqlglot takes long to import, and who reads footers never needs it.
    from windrow_service.inventory.type_parser import parse_type

    return parse_type(text)


# Parsing takes a millisecond, and wide tables have thousands of columns of few types.
_kept = lru_cache(maxsize=1024)(_parsed)
