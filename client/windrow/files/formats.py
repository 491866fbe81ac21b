"""What the formats of files allow: who knows their rows, and who reads them."""

from __future__ import annotations

from collections.abc import Mapping

# Of these a refresh knows names and sizes alone: there is nothing to read short of all rows.
LISTED = frozenset({"csv", "json", "text"})

# Only Spark's own reader gives their rows.
READ_BY_SPARK = frozenset({*LISTED, "avro"})

# Of these a refresh must be told the columns.
UNTOLD = frozenset({"csv", "json"})

# Options by which a record may be more than a line.
_OVER_LINES = ("multiLine", "wholetext", "lineSep")


def begins_at_any_line(options: Mapping[str, str]) -> bool:
    """Tell whether a reader of text can start at any line, as the options of its table say."""
    return all(options.get(name, "false").lower() == "false" for name in _OVER_LINES)
