"""What Spark may ask of the format `windrow` besides reading it, and how that is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from windrow_spark.errors import OnlyClientWritesError, ReadError, StreamReadError, StreamWriteError

_ERRORS: Final = {
    "write": OnlyClientWritesError,
    "writeStream": StreamWriteError,
    "readStream": StreamReadError,
}
# Stands for the table in the words of an error: not every way to write passes the options on.
_UNNAMED = "schema.table"


def refusal(use: str, options: Mapping[str, str]) -> ReadError:
    """Return the error that refuses a use of the table that options name.

    Args:
        use: The name of Spark's method: `write`, `writeStream` or `readStream`.
        options: Options of the format.
    """
    return _ERRORS[use](options.get("table") or options.get("path") or _UNNAMED)
