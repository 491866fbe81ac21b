"""Columns that tell the file of each row: those of `_metadata`, and what `input_file_name()` needs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow_calls.plans import SplitPlan
from windrow_core.models import Column, Plan
from windrow_spark.relation.division import alike_of, obstacle_of
from windrow_tables.errors import UnfitReadError
from windrow_tables.groups.cutting import splits_of

_READ_DIRECTLY = "read its location with `spark.read`"

# The fields of `_metadata` that are the same in all rows of a split, with their types in SQL.
_TYPES = {
    "uri": "string",
    "file_path": "string",
    "file_name": "string",
    "file_size": "bigint",
    "file_block_start": "bigint",
    "file_block_length": "bigint",
    "file_modification_time": "timestamp",
}
# The characters that Java's URIs escape in paths.
_ODD = re.compile(
    '[\\x00- "#%<>?\\[\\\\\\]^`{|}\\x7f-\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]'
)
# What `ScannedRows.java` needs to tell `input_file_name()` and its like about a row, in order.
BLOCK_COLUMNS = ("uri", "file_block_start", "file_block_length")


def check_named(plan: Plan) -> None:
    """Refuse to name files of tables whose other readers give other names, or none."""
    if not plan.reading.is_plain:
        raise UnfitReadError(
            f"`_metadata` and input_file_name() cannot be answered for table {plan.table!r}, as "
            f"files of {plan.reading.nameless} tables have no such name",
            "leave them out",
        )


def with_file_columns(
    plan: Plan, groups: pa.Table, names: Sequence[str], home: str | None
) -> tuple[Plan, pa.Table]:
    """Return a plan and its groups with further columns, as if its files lay in more folders.

    Args:
        plan: The plan.
        groups: Its groups, as the coordinator streams them.
        names: Fields of `_metadata`, and what else `_TYPES` has; a name may be repeated.
        home: The table's location as `hadoop_location` returns it.
    """
    location = home or plan.location
    splits = splits_of(groups)
    partition = splits["partition"].combine_chunks()
    values = {field.name: partition.field(field.name) for field in partition.type}
    columns = []
    for place, name in enumerate(names):
        # No column of a table has such a name twice: columns of files may be called `file_name`.
        column = Column(name=f"_metadata.{name}.{place}", type=_TYPES[name])
        columns.append(column)
        values[column.name] = _values(splits, name, location)
    more = pa.StructArray.from_arrays(list(values.values()), names=list(values))
    splits = splits.set_column(splits.column_names.index("partition"), "partition", more)
    counts = np.asarray(pc.list_value_length(groups["splits"]), np.int64)
    offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int32())
    lists = pa.ListArray.from_arrays(offsets, splits.to_struct_array().combine_chunks())
    place = groups.column_names.index("splits")
    return (
        plan.model_copy(
            update={
                "columns": [*plan.columns, *columns],
                "partition_columns": [*plan.partition_columns, *columns],
            }
        ),
        groups.set_column(place, "splits", lists),
    )


def _values(splits: pa.Table, name: str, location: str) -> pa.Array:
    if name == "file_name":
        return pc.replace_substring_regex(_escaped(splits), "(?s)^.*/", "")
    if name in ("uri", "file_path"):
        # As in Hadoop, where a path shows fewer slashes than its URI.
        scheme = "file://" if name == "uri" else "file:"
        folder = _escape(location.rstrip("/")) + "/"
        if folder.startswith("file://"):
            folder = scheme + folder.removeprefix("file://")
        paths = _escaped(splits)
        inside = pc.binary_join_element_wise(folder, paths, "")
        outside = pc.binary_join_element_wise(scheme, paths, "")
        local = pc.if_else(pc.starts_with(paths, "/"), outside, inside)
        return pc.if_else(pc.match_substring(paths, "://"), paths, local)
    if name == "file_modification_time":
        # Hadoop's file systems know milliseconds.
        milliseconds = np.asarray(splits["mtime_ns"], np.int64) // 1_000_000
        return pa.array(milliseconds * 1_000).cast(pa.timestamp("us", "UTC"))
    column = {"file_size": "size_bytes", "file_block_start": "start"}.get(name, "length")
    return splits[column].cast(pa.int64()).combine_chunks()


def _escaped(splits: pa.Table) -> pa.Array:
    paths = splits["path"].cast(pa.string()).combine_chunks()
    if not pc.any(pc.match_substring_regex(paths, _ODD.pattern)).as_py():
        return paths
    return pa.array([_escape(path) for path in paths.to_pylist()], pa.string())


def _escape(path: str) -> str:
    return _ODD.sub(lambda odd: quote(odd[0], safe=""), path)


def uris_of(plan: SplitPlan, home: str | None) -> pa.Array:
    """Return the URI of each split's file.

    Args:
        plan: The plan.
        home: The table's location as `hadoop_location` returns it.
    """
    return _values(splits_of(plan.groups), "uri", home or plan.info.location)


def without_caches(plan: SplitPlan) -> SplitPlan:
    """Return a plan whose files are read where they are, though a worker has a copy."""
    names = [name for name in plan.groups.column_names if name == "cached_on"]
    return SplitPlan(plan.info, plan.groups.drop_columns(names))


def check_native_only(plan: SplitPlan, home: str | None, *, has_filter: bool) -> None:
    """Refuse a scan of which Spark's own reader cannot read every file.

    Args:
        plan: The scan's plan.
        home: The table's location as `hadoop_location` returns it.
        has_filter: Whether there is a filter that the query itself does not apply.
    """
    reasons = _why_grouped(plan, home, has_filter)
    if reasons:
        reason, way_out = reasons
        raise UnfitReadError(
            f"only Spark's own reader knows the numbers of rows in files, but of table "
            f"{plan.info.table!r} it cannot read every file: {reason}",
            way_out,
        )


def _why_grouped(plan: SplitPlan, home: str | None, has_filter: bool) -> tuple[str, str] | None:
    """Return why some files stay in groups, and the remedy; None if no file does."""
    obstacle = obstacle_of(plan.info, "native", home)
    if obstacle:
        return obstacle
    if has_filter and plan.groups["residual_filter"].null_count < len(plan.groups):
        return "Spark's own reader applies no `filter`", "use .where(…) on the DataFrame"
    splits = splits_of(plan.groups)
    alike = alike_of(splits)
    if alike.null_count:
        path = str(splits.filter(pc.is_null(alike))["path"][0])
        return (
            f"it is not known whether Spark's own reader agrees with the plan on {path!r}",
            "refresh the table",
        )
    unlike = splits.filter(pc.invert(alike))
    if len(unlike):
        return (
            f"file {str(unlike['path'][0])!r} holds a requested column in a form that is read in "
            "groups only",
            f"leave the column out, or {_READ_DIRECTLY}",
        )
    return None
