"""Plans made by hand from a folder of Parquet files, without a coordinator."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from windrow_core.files.footers import rows_in
from windrow_core.models import Column, Plan, PlanOptions, PlanSummary, SortColumn

NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"

_PARTITION_TYPES = {
    "int": pa.int32(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "date": pa.date32(),
    "string": pa.string(),
}


def columns_of(types: Mapping[str, str]) -> list[Column]:
    return [Column(name=name, type=type_) for name, type_ in types.items()]


def plan_of(
    location: Path | str,
    columns: Mapping[str, str],
    *,
    asked: Sequence[str] | None = None,
    partition: Mapping[str, str] | None = None,
    sort: Sequence[SortColumn] = (),
    hidden: Sequence[str] = (),
    group_count: int = 2,
    by_row_group: bool = False,
    residual: Mapping[str, Any] | None = None,
    hosts: Mapping[str, Sequence[str]] | None = None,
    native: Callable[[str], bool | None] = lambda path: None,
) -> tuple[Plan, pa.Table]:
    """Return a plan of every Parquet file under `location`, and its groups.

    Args:
        location: Folder of the table.
        columns: Spark types of the columns in the files.
        asked: Columns to return; all by default, with partition columns last.
        partition: Spark types of the partition columns, outermost first.
        sort: Sort columns of the files.
        hidden: Further columns of the files that the residual filter or the sort order needs.
        group_count: Maximum number of groups; each gets a run of splits in path order.
        by_row_group: Whether each row group is a separate split.
        residual: Residual filter for the reader, the same for all groups.
        hosts: Hosts by relative path; each file with hosts becomes a separate group.
        native: Whether Spark's own reader returns the same rows, by relative path; None if unknown.
    """
    partition = dict(partition or {})
    splits = splits_of(location, partition, by_row_group=by_row_group)
    splits = [{**split, "native": native(split["path"])} for split in splits]
    if hosts is None:
        size = -(-len(splits) // group_count) or 1
        members = [splits[i : i + size] for i in range(0, len(splits), size)]
        group_hosts: list[Sequence[str]] = [[] for _ in members]
    else:
        members = [[split] for split in splits]
        group_hosts = [hosts.get(split["path"], []) for split in splits]
    types = {**columns, **partition}
    plan = Plan(
        plan_id="p",
        status="completed",
        table="test",
        snapshot_id=1,
        created_at=datetime.now(timezone.utc),
        expires_at=datetime.now(timezone.utc),
        location=str(location),
        columns=columns_of({name: types[name] for name in (asked or types)}),
        hidden_columns=columns_of({name: columns[name] for name in hidden}),
        partition_columns=columns_of(partition),
        sort_columns=list(sort),
        filter=None,
        options=PlanOptions(),
        summary=_summary(splits, members),
        groups=[],
        next_page_token=None,
    )
    return plan, groups_table(members, group_hosts, residual, partition)


def _summary(splits: Sequence[dict[str, Any]], groups: Sequence[Any]) -> PlanSummary:
    sizes = [sum(split["length"] for split in group) for group in groups] or [0]
    return PlanSummary(
        strategy="balanced",
        files_total=len(splits),
        files_planned=len(splits),
        files_pruned_by_partition=0,
        files_pruned_by_statistics=0,
        size_bytes=sum(sizes),
        row_count=sum(split["row_count"] for split in splits),
        group_count=len(groups),
        split_count=len(splits),
        largest_group_bytes=max(sizes),
        smallest_group_bytes=min(sizes),
        largest_group_splits=max(map(len, groups), default=0),
        groups_with_hosts=0,
        planning_seconds=0.0,
    )


def splits_of(
    location: Path | str, partition: Mapping[str, str], *, by_row_group: bool = False
) -> list[dict[str, Any]]:
    splits = []
    paths = sorted(
        os.path.relpath(os.path.join(folder, name), location)
        for folder, _, names in os.walk(location)
        for name in names
        if name.endswith(".parquet")
    )
    for path in paths:
        full = os.path.join(location, path)
        status = os.stat(full)
        metadata = pq.read_metadata(full)
        split = {
            "path": path,
            "start": 0,
            "length": status.st_size,
            "size_bytes": status.st_size,
            "mtime_ns": status.st_mtime_ns,
            "row_count": rows_in(metadata),
            "partition": partition_values(path, partition),
        }
        if not by_row_group:
            splits.append(split)
            continue
        starts = []
        for i in range(metadata.num_row_groups):
            first = metadata.row_group(i).column(0)
            starts.append(min(filter(None, (first.dictionary_page_offset, first.data_page_offset))))
        for start, end in zip(starts, [*starts[1:], status.st_size], strict=True):
            splits.append({**split, "start": start, "length": end - start})
    return splits


def partition_values(path: str, partition: Mapping[str, str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, folder in zip(partition, path.split("/"), strict=False):
        key, _, text = folder.partition("=")
        assert key == name, f"{folder} is not a folder of {name}"
        cell = None if text == NULL_FOLDER else unquote(text)
        values[name] = pa.array([cell]).cast(_PARTITION_TYPES[partition[name]])[0].as_py()
    return values


def splits_type(partition: Mapping[str, str]) -> pa.DataType:
    return pa.struct(
        [
            ("path", pa.string()),
            *((name, pa.int64()) for name in ("start", "length", "size_bytes", "mtime_ns")),
            ("row_count", pa.int64()),
            ("partition", pa.struct([(n, _PARTITION_TYPES[t]) for n, t in partition.items()])),
            ("native", pa.bool_()),
        ]
    )


def groups_table(
    members: Sequence[Sequence[dict[str, Any]]],
    hosts: Sequence[Sequence[str]],
    residual: Mapping[str, Any] | None,
    partition: Mapping[str, str],
) -> pa.Table:
    count = len(members)
    return pa.table(
        {
            "group_id": pa.array(range(count), pa.int32()),
            "bucket": pa.nulls(count, pa.int32()),
            "hosts": pa.array(hosts, pa.list_(pa.string())),
            "size_bytes": pa.array([sum(s["length"] for s in m) for m in members], pa.int64()),
            "residual_filter": pa.array(
                [None if residual is None else json.dumps(residual)] * count, pa.string()
            ),
            "splits": pa.array(members, pa.list_(splits_type(partition))),
        }
    )


def group_of(location: Path | str, partition: Mapping[str, str] | None = None) -> pa.RecordBatch:
    """Return the splits of all files under `location` in the form that a task gets."""
    partition = dict(partition or {})
    rows = pa.array(splits_of(location, partition), splits_type(partition))
    return pa.RecordBatch.from_struct_array(rows)
