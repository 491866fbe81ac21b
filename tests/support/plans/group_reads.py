"""Rows of files as the task of a group reads them, without Spark and a coordinator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from windrow_core.files.types import spark_type
from windrow_core.models import Column, Plan, PlanOptions, PlanSummary
from windrow_service.usecases.tables.columns import file_fields
from windrow_spark.reading.reader import Schemas, read_spec
from windrow_tables.executor.reading import read_group
from windrow_tables.executor.rebasing import Calendars


def _plan_of(folder: Path, schema: pa.Schema) -> Plan:
    """Return a plan of all columns, as the coordinator describes it."""
    columns = [Column(name=one.name, type=spark_type(one.type)) for one in schema]
    fields: dict[str, Any] = {
        "plan_id": "p",
        "status": "completed",
        "table": "t",
        "snapshot_id": 1,
        "created_at": "2026-01-01T00:00:00Z",
        "expires_at": "2026-01-01T01:00:00Z",
        "location": str(folder),
        "logged": True,
        "file_fields": file_fields(schema, schema.names),
        "columns": columns,
        "hidden_columns": [],
        "partition_columns": [],
        "sort_columns": [],
        "filter": None,
        "options": PlanOptions(),
        "summary": PlanSummary.model_construct(group_count=1),
        "groups": [],
        "next_page_token": None,
    }
    return Plan.model_construct(**fields)


def read(folder: Path, files: list[str], schema: pa.Schema) -> list[dict[str, Any]]:
    """Return the rows of whole files, as the task of a group reads them."""
    plan = _plan_of(folder, schema)
    nothing = StructType([])
    spec = read_spec(plan, Schemas(from_arrow_schema(schema), nothing, nothing), Calendars)
    splits = pa.RecordBatch.from_pylist(
        [
            {
                "path": name,
                "start": 0,
                "length": (folder / name).stat().st_size,
                "size_bytes": (folder / name).stat().st_size,
                "mtime_ns": 0,
                "row_count": pq.read_metadata(folder / name).num_rows,
                "partition": {},
            }
            for name in files
        ]
    )
    return [row for batch in read_group(spec, splits, None) for row in batch.to_pylist()]
