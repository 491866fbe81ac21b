"""How the files of one scan are divided: some to Spark's own reader, the rest in groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from windrow_calls.plans import SplitPlan
from windrow_core.cards import Shown, count_text
from windrow_core.files.places import place_of
from windrow_core.files.schemes import beginning_of
from windrow_core.models import Plan
from windrow_spark.relation.cost import fractions_of, native_files
from windrow_tables.errors import OnlySparkReadsError
from windrow_tables.groups.checks import check_groups
from windrow_tables.groups.cutting import OPEN_COST, splits_of

Reader = Literal["auto", "grouped", "native"]

_Marks = npt.NDArray[np.bool_]
_Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Division:
    """Which way each file of a plan is read.

    Attributes:
        native: The files that Spark's own reader reads: `path`, `size_bytes`, `mtime_ns`,
            `partition`, and the `hosts` of their groups.
        grouped: The groups of all other files.
        reason: Why the files are divided in this way.
    """

    native: pa.Table
    grouped: pa.Table
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ReadExplanation(Shown):
    """How a scan would read its files.

    Attributes:
        plan_id: The plan that was divided.
        native_files: How many files Spark's own reader would read.
        native_bytes: Their bytes.
        packed_files: How many would have their rows read from packs.
        grouped_files: How many would be read in groups.
        groups: The number of groups.
        reason: Why, as a sentence.
    """

    plan_id: str
    native_files: int
    native_bytes: int
    packed_files: int
    grouped_files: int
    groups: int
    reason: str


def explained(plan: SplitPlan, packed_files: int, division: Division) -> ReadExplanation:
    """Return in figures how many files of a plan come from packs, and how the others are divided."""
    return ReadExplanation(
        plan_id=plan.info.plan_id,
        native_files=len(division.native),
        native_bytes=int(np.asarray(division.native["size_bytes"], np.int64).sum()),
        packed_files=packed_files,
        grouped_files=plan.summary.files_planned - len(division.native) - packed_files,
        groups=len(division.grouped),
        reason=division.reason,
    )


def divide(
    plan: SplitPlan,
    reader: Reader,
    *,
    home: str | None,
    filtered: bool,
    output: Sequence[Any],
    types: Sequence[Any],
) -> Division:
    """Divide the files of a plan.

    Args:
        plan: The plan.
        reader: `auto` for whichever way is estimated to be faster; or the way to prefer.
        home: The table's location as `hadoop_location` returns it.
        filtered: Whether there is a filter that the query itself does not apply.
        output: The types of the columns to read from the files.
        types: The types of all columns of the files.
    """
    info = plan.info
    splits = splits_of(plan.groups)
    if info.reading.names_rows:
        check_groups(info, plan.groups)
        return _grouped(plan, splits, "only groups tell which rows of the table are deleted")
    obstacle = obstacle_of(info, reader, home)
    only_native = _only_native(splits)
    if only_native.any():
        unlike = splits.filter(pa.array(only_native))
        path = str(unlike["path"][0]) if info.reading.files.is_grouped else ""
        check_native(info, reader, home, path)
        left = np.asarray(pc.is_valid(plan.groups["residual_filter"]))
        if filtered and left[_group_of(plan.groups)][only_native].any():
            raise OnlySparkReadsError(info.table, info.format, *_UNFILTERED, path)
    if home is None or obstacle or not len(splits):
        why = obstacle[0] if obstacle else "there are no files to read"
        return _grouped(plan, splits, why)
    group = _group_of(plan.groups)
    codes = splits["path"].combine_chunks().dictionary_encode()
    file = np.asarray(codes.indices)
    sizes = np.zeros(len(codes.dictionary), np.int64)
    sizes[file] = np.asarray(splits["size_bytes"])
    able = np.ones(len(sizes), np.bool_)
    able[file[~_fit_groups(plan.groups, filtered)[group]]] = False
    alike = alike_of(splits)
    able[file[~np.asarray(alike.fill_null(False), np.bool_)]] = False
    unknown = len(np.unique(file[np.asarray(alike.is_null(), np.bool_)]))
    able &= _within_reach(info, codes.dictionary)
    slots = info.options.parallelism
    only_able = np.zeros(len(sizes), np.bool_)
    only_able[file[only_native]] = True
    choice = (
        able
        if reader == "native"
        else native_files(
            sizes,
            able,
            fractions_of(output, types),
            slots,
            request_s=place_of(info.location).request_s,
        )
    )
    choice = choice | only_able
    if not choice.any():
        why = "groups cost less for files of their size" if able.any() else _NOT_ABLE
        return _grouped(plan, splits, why + _unknown_text(unknown))
    first = np.full(len(sizes), -1, np.int64)
    first[file[::-1]] = np.arange(len(file))[::-1]
    hosts = plan.groups["hosts"].take(group[first[choice]])
    native = splits.take(first[choice]).append_column("hosts", hosts)
    bytes_ = int(sizes[choice].sum())
    reason = (
        f"Spark's own reader reads {count_text(int(choice.sum()), 'file')} of {bytes_:,} bytes"
        + _WHY_NATIVE["only" if only_able.all() else reader]
        + f"; in groups stay {count_text(int((~choice).sum()), 'file')}"
        + _unknown_text(unknown)
    )
    return Division(
        native=native,
        grouped=regrouped(plan.groups, splits, group, ~choice[file], info, slots),
        reason=reason,
    )


def check_native(plan: Plan, reader: Reader, home: str | None, path: str = "") -> None:
    """Refuse a plan of files that Spark's own reader must read but may not.

    Args:
        plan: The plan.
        reader: The way to prefer.
        home: The table's location as `hadoop_location` returns it.
        path: One of the files, if others may be read in groups.
    """
    obstacle = obstacle_of(plan, reader, home)
    if obstacle:
        raise OnlySparkReadsError(plan.table, plan.format, *obstacle, path)


_UNFILTERED = "which applies no `filter`", "use .where(…) on the DataFrame"
_WHY_NATIVE = {
    "only": ", as only it reads them correctly",
    "native": ", as asked for",
    "auto": ", where it costs less",
}
_NOT_ABLE = "only the grouped reader reads all rows of these files as planned"


def obstacle_of(plan: Plan, reader: Reader, home: str | None) -> tuple[str, str] | None:
    """Return why no file of a plan can be read by Spark's own reader, and the remedy.

    Args:
        plan: The plan.
        reader: The way to prefer.
        home: The table's location as `hadoop_location` returns it.
    """
    if reader == "grouped":
        return "all files are read in groups, as asked for", 'leave out `reader="grouped"`'
    if plan.summary.delete_files and not plan.reading.is_logged:
        return "delete files apply to them", "compact the table first"
    if plan.sort_columns:
        return (
            "groups keep the order of the table's sort columns",
            "register the table without sort_columns",
        )
    if home is None:
        scheme = plan.location.partition("://")[0]
        return (
            f"Spark's Hadoop has no file system for {scheme}://",
            "start Spark with its jars, such as hadoop-aws",
        )
    return None


def _within_reach(plan: Plan, paths: pa.Array) -> _Marks:
    """Mark the files that Spark's Hadoop reads where the table's location is; see `hadoop_path`."""
    outside = pc.match_substring_regex(paths, "^/|://")
    same = pc.starts_with(paths, beginning_of(plan.location))
    return np.asarray(pc.or_(pc.invert(outside), same))


def _only_native(splits: pa.Table) -> _Marks:
    """Mark the splits of files that the grouped reader does not read correctly."""
    # An older coordinator does not send this column.
    if "grouped" not in splits.column_names:
        return np.zeros(len(splits), np.bool_)
    return ~np.asarray(splits["grouped"].fill_null(True), np.bool_)


def _grouped(plan: SplitPlan, splits: pa.Table, reason: str) -> Division:
    native = splits.slice(0, 0).append_column("hosts", plan.groups["hosts"].slice(0, 0))
    return Division(native=native, grouped=plan.groups, reason=reason)


def _fit_groups(groups: pa.Table, filtered: bool) -> _Marks:
    """Mark the groups whose files Spark's own reader may read, as no cache or filter is needed."""
    fit = np.ones(len(groups), np.bool_)
    if "cached_on" in groups.column_names:
        fit &= np.asarray(pc.is_null(groups["cached_on"]))
    if filtered:
        fit &= np.asarray(pc.is_null(groups["residual_filter"]))
    return fit


def alike_of(splits: pa.Table) -> Any:
    """Return for each split whether both readers read its file alike; null if unknown."""
    # An older coordinator does not send this column.
    if "native" not in splits.column_names:
        return pa.chunked_array([pa.nulls(len(splits), pa.bool_())])
    return splits["native"]


def _unknown_text(files: int) -> str:
    if not files:
        return ""
    return f"; for {files:,} it is not known whether both readers agree: refresh the table"


def _group_of(groups: pa.Table) -> _Ints:
    """Return for each split the index of its group."""
    counts = np.asarray(pc.list_value_length(groups["splits"]), np.int64)
    return np.repeat(np.arange(len(groups)), counts)


def regrouped(
    groups: pa.Table, splits: pa.Table, group: _Ints, mask: _Marks, plan: Plan, slots: int
) -> pa.Table:
    """Return new groups of the remaining splits, each with about the same work.

    Splits share a group only if their old groups have the same hosts, filter, bucket and worker.
    """
    if not mask.any():
        return groups.slice(0, 0)
    alike = _codes([groups[n] for n in groups.column_names if n in _TOGETHER])
    order = np.argsort(alike[group[mask]], kind="stable")
    left = np.flatnonzero(mask)[order]
    key = alike[group[left]]
    work = np.asarray(splits["length"], np.int64)[left] + OPEN_COST
    share = min(plan.options.max_split_size, -(-int(work.sum()) // max(1, slots)))
    before = np.cumsum(work) - work
    starts = np.flatnonzero(np.diff(key, prepend=-1))
    before -= np.repeat(before[starts], np.diff(np.append(starts, len(key))))
    bins = before // max(1, share)
    begins = np.flatnonzero((np.diff(key, prepend=-1) != 0) | (np.diff(bins, prepend=-1) != 0))
    offsets = np.append(begins, len(left)).astype(np.int32)
    lists = pa.ListArray.from_arrays(
        pa.array(offsets), splits.take(left).to_struct_array().combine_chunks()
    )
    regrouping = groups.take(group[left[begins]])
    sizes = np.add.reduceat(np.asarray(splits["length"], np.int64)[left], begins)
    for name, column in (
        ("group_id", pa.array(np.arange(len(begins)), groups.schema.field("group_id").type)),
        ("size_bytes", pa.array(sizes)),
        ("splits", lists.cast(groups.schema.field("splits").type)),
    ):
        regrouping = regrouping.set_column(regrouping.column_names.index(name), name, column)
    return regrouping.take(np.argsort(-sizes, kind="stable"))


_TOGETHER = ("hosts", "residual_filter", "bucket", "cached_on")


def _codes(columns: list[Any]) -> _Ints:
    """Return a number for each row; rows with equal values have the same number."""
    rows: dict[tuple[Any, ...], int] = {}
    values = (
        [tuple(value) if isinstance(value, list) else value for value in column.to_pylist()]
        for column in columns
    )
    return np.array([rows.setdefault(row, len(rows)) for row in zip(*values, strict=True)])
