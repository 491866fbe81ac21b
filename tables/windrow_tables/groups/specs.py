"""What the groups of a plan have in common, from the plan and its columns in Arrow's types."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from windrow_core.files.file_fields import (
    DEFAULT,
    FIELD_ID,
    NAMES_IN_FILES,
    named_children,
    with_children,
)
from windrow_core.models import FileField, Plan, SortColumn
from windrow_tables.executor.filters import columns_of
from windrow_tables.executor.rebasing import Calendars, may_be_rebased
from windrow_tables.executor.sorting import is_sortable
from windrow_tables.executor.spec import PackFile, ReadLimits, ReadSpec, SortKey


class PlanSchemas(NamedTuple):
    """The columns of a plan: those asked for, those that are only compared, partition columns."""

    output: pa.Schema
    extra: pa.Schema
    partition: pa.Schema


def spec_of(plan: Plan, schemas: PlanSchemas, calendars: Callable[[], Calendars]) -> ReadSpec:
    """Return what the groups of a plan have in common.

    Args:
        plan: The coordinator's answer.
        schemas: Its columns.
        calendars: Returns how old dates and times are read; called only if there may be any.
    """
    output, hidden, partition = schemas
    output, hidden = (in_files(schema, plan.file_fields) for schema in (output, hidden))
    data = pa.schema([field for field in output if field.name not in partition.names])
    names = {*partition.names, *data.names}
    hidden = pa.schema([field for field in hidden if field.name not in names])
    has_old = any(may_be_rebased(field.type) for field in (*data, *hidden))
    types = {field.name: field.type for schema in (partition, data, hidden) for field in schema}
    return ReadSpec(
        table=plan.table,
        location=plan.location,
        data=data,
        hidden=hidden,
        partition=partition,
        output=tuple(output.names),
        sort=_sort_keys(plan.sort_columns, types),
        calendars=calendars() if has_old else Calendars(),
        format=plan.format,
        names_rows=plan.reading.names_rows,
        valid_write_ids=plan.valid_write_ids,
        logged=plan.logged,
        outlines=tuple(plan.outlines),
        packs=tuple(PackFile(one.path, one.size_bytes) for one in plan.packs),
        limits=_limits(plan),
    )


def residual_columns(groups: pa.Table) -> set[str]:
    """Return the names of the columns that the residual filters of groups compare."""
    residuals = pc.drop_null(pc.unique(groups["residual_filter"])).to_pylist()
    return {name for residual in residuals for name in columns_of(json.loads(residual))}


def _limits(plan: Plan) -> ReadLimits:
    options = plan.options
    most_per_s = options.requests_per_second
    tasks = max(1, min(options.parallelism, plan.summary.group_count))
    ahead = options.model_dump(include={"prefetch_files", "prefetch_bytes"}, exclude_none=True)
    return ReadLimits(
        **ahead, requests_per_second=None if most_per_s is None else most_per_s / tasks
    )


def in_files(schema: pa.Schema, file_fields: Mapping[str, FileField]) -> pa.Schema:
    """Return columns with metadata that says how files store them."""
    fields = [
        _in_file(field, file_fields[field.name]) if field.name in file_fields else field
        for field in schema
    ]
    return pa.schema(fields)


def _in_file(field: pa.Field, file_field: FileField) -> pa.Field:
    children = [
        _in_file(child, file_field.fields[name]) if name in file_field.fields else child
        for name, child in named_children(field.type)
    ]
    metadata = {
        FIELD_ID: None if file_field.id is None else str(file_field.id),
        NAMES_IN_FILES: json.dumps(file_field.names) if file_field.names else None,
        DEFAULT: file_field.default,
    }
    texts = {key: value for key, value in metadata.items() if value is not None}
    return field.with_type(with_children(field.type, children)).with_metadata(texts)


def _sort_keys(columns: Sequence[SortColumn], types: dict[str, pa.DataType]) -> tuple[SortKey, ...]:
    """Return the keys to merge by, up to the first column that is not read or cannot be sorted by.

    The rows do not show the order beyond such a column.
    """
    keys: list[SortKey] = []
    for column in columns:
        if column.name not in types or not is_sortable(types[column.name]):
            break
        nulls_first = column.nulls_first
        keys.append(
            SortKey(
                name=column.name,
                descending=column.descending,
                nulls_first=not column.descending if nulls_first is None else nulls_first,
            )
        )
    return tuple(keys)
