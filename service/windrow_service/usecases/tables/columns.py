"""Columns as callers see them."""

from __future__ import annotations

import pyarrow as pa

from windrow.files.types import spark_type
from windrow.models import Column


def wire_columns(schema: pa.Schema) -> list[Column]:
    """Return a schema as names and Spark SQL types."""
    return [Column(name=field.name, type=spark_type(field.type)) for field in schema]
