"""The distinct partitions of a snapshot, on which Spark evaluates conditions."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from windrow_core.models import Column
from windrow_spark.arrow_types import arrow_schema, spark_schema
from windrow_tables.executor.local_times import in_type


def partition_rows(answer: pa.Table, types: Mapping[str, str], zone: str) -> pa.Table:
    """Return a snapshot's partitions in the order of their numbers.

    Args:
        answer: The coordinator's, as `Coordinator.partition_values` returns it.
        types: The columns of the relation, which may lack some of the table's, with their types as
            Spark SQL writes them.
        zone: The zone of local times, as the text of a `LocalZone`.

    Returns:
        The partition columns, with the types of Spark's rows; bytes; and rows, null if unknown.
    """
    names = answer.column_names[:-3]
    places = [place for place, name in enumerate(names) if name in types]
    columns = [Column(name=names[place], type=types[names[place]]) for place in places]
    schema = arrow_schema(spark_schema(columns))
    values = [
        in_type(answer.column(place).combine_chunks(), field.type, zone)
        for place, field in zip(places, schema, strict=True)
    ]
    return pa.table(
        [*values, *answer.columns[-2:]],
        schema=pa.schema([*schema, ("size_bytes", pa.int64()), ("row_count", pa.int64())]),
    )
