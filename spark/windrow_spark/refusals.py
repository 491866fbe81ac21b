"""What Spark may ask of the format `windrow` besides reading it, and how that is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from windrow_spark.errors import UnfitReadError

# What cannot be done with a table, and what to do instead.
_REFUSALS: Final = {
    "write": (
        "Spark cannot write table {table!r} by itself, and has written nothing",
        "use client.write(df, {table!r}), with `mode` to replace rows",
    ),
    "writeStream": (
        "a stream cannot write table {table!r} by itself",
        "write each batch with .writeStream.foreachBatch(lambda df, _: client.write(df, "
        "{table!r}))",
    ),
    "readStream": (
        "table {table!r} cannot be read as a stream, only at one snapshot",
        "use spark.read instead of spark.readStream, in the foreachBatch of another stream if "
        "need be, where client.write writes tables",
    ),
}
# Stands for the table in the words of an error: not every way to write passes the options on.
_UNNAMED = "schema.table"


def refusal(use: str, options: Mapping[str, str]) -> UnfitReadError:
    """Return the error that refuses a use of the table that options name.

    Args:
        use: The name of Spark's method: `write`, `writeStream` or `readStream`.
        options: Options of the format.
    """
    table = options.get("table") or options.get("path") or _UNNAMED
    reason, way_out = _REFUSALS[use]
    return UnfitReadError(reason.format(table=table), way_out.format(table=table))
