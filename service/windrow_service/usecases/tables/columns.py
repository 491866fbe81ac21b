"""Columns as callers see them, and as Arrow has them."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from windrow.files.types import spark_type
from windrow.models import Column
from windrow_service.inventory.spark_types import arrow_type


def wire_columns(schema: pa.Schema) -> list[Column]:
    """Return a schema as names and Spark SQL types."""
    return [Column(name=field.name, type=spark_type(field.type)) for field in schema]


def schema_of(columns: Sequence[Column] | None) -> pa.Schema | None:
    """Return declared columns as Arrow types; None stays None.

    Raises:
        UnknownTypeError: A type is not one of Spark SQL's.
    """
    if columns is None:
        return None
    return pa.schema([(column.name, arrow_type(column.type)) for column in columns])
