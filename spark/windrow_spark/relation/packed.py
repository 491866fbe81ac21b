"""The files of a plan whose rows Spark's own reader reads from packs, and why the others are not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from windrow_calls.plans import SplitPlan
from windrow_core.cards import count_text
from windrow_core.files.arrays import flat, numbers_of
from windrow_core.files.schemes import is_remote
from windrow_core.models import Column, Plan
from windrow_spark.hadoop import hadoop_location
from windrow_spark.relation import requests
from windrow_spark.relation.division import Reader, alike_of, obstacle_of, regrouped
from windrow_spark.relation.java_classes import packs_factory, planned_format
from windrow_spark.relation.native import escaped, schemas_of
from windrow_spark.relation.pins import Pin
from windrow_tables.errors import UnfitReadError
from windrow_tables.groups.cutting import splits_of

SETTING = "spark.windrow.packs"

_NO_PACK = -1
# Partition columns that packs have as Spark reads them; of dates, those after the old calendar.
_TYPES = ("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string", "date")
_FIRST_DAY = -141_427

_Ints = npt.NDArray[np.int64]
_Marks = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """The files of a plan that packs hold.

    Attributes:
        relation: The packs as the JVM's relation; None if none is read.
        files: How many files have their rows there.
        rest: The plan of the other files.
        reason: Why files that packs hold are read by themselves; empty if there are none.
        unreadable: Paths of packs that cannot be read.
    """

    relation: Any
    files: int
    rest: SplitPlan
    reason: str = ""
    unreadable: Sequence[str] = ()


def why_files(spark: SparkSession, pin: Pin, request: requests.Scan) -> str:
    """Return why a scan must read the files themselves; an empty text if packs may be read."""
    if pin.reader == "grouped":
        return "all files are read in groups, as asked for"
    if pin.additions is not None:
        return "these are the files that a snapshot added"
    if request.names or request.metadata or request.row_numbers:
        return "the query asks which file each row is from"
    if request.buckets:
        return "each task reads the files of one bucket"
    if request.limit is not None:
        return "few files are enough for the query's limit"
    if str(spark.conf.get(SETTING, "true")).lower() == "false":
        return f"`{SETTING}` is false"
    return ""


def packed_files(
    spark: SparkSession,
    plan: SplitPlan,
    reader: Reader,
    types: Mapping[str, str],
    home: str | None,
    *,
    has_filter: bool,
) -> Packed:
    """Return the files of a plan whose rows are read from packs, and the plan of the others.

    Args:
        spark: A classic session.
        plan: The plan.
        reader: Which way files are read.
        types: All columns of the relation, with their types as Spark SQL writes them.
        home: The table's location as `hadoop_location` returns it.
        has_filter: Whether there is a filter that the query itself does not apply.
    """
    info = plan.info
    if not info.packs:
        return Packed(relation=None, files=0, rest=plan)
    splits = splits_of(plan.groups)
    pack = numbers_of(splits["pack"].fill_null(_NO_PACK)).astype(np.int64)
    reason = _obstacle(info, reader, home)
    marks = np.zeros(len(pack), np.bool_)
    if not reason:
        marks = (pack != _NO_PACK) & _fit(plan, splits, has_filter=has_filter)
        if not marks.all():
            reason = "only the files themselves are read as planned"
    if not marks.any():
        return Packed(relation=None, files=0, rest=plan, reason=reason)
    rows = _wanted_rows(info, splits, marks)
    packs = packs_factory(spark).open(spark._jsparkSession, _lines(spark, info))
    why = packs.why().split("\n")[: len(info.packs)]
    unreadable = [one.path for one, text in zip(info.packs, why, strict=True) if text]
    if unreadable:
        reason = f"pack {unreadable[0]} cannot be read: {next(filter(None, why))}"
        is_lost = np.array(list(map(bool, why)))
        marks[marks] = ~is_lost[pack[marks]]
        rows = rows[:, ~is_lost[rows[0]]]
        if not marks.any():
            return Packed(relation=None, files=0, rest=plan, reason=reason, unreadable=unreadable)
    return Packed(
        relation=_relation(spark, info, packs, _ranges(*rows), types),
        files=int(marks.sum()),
        rest=_without(plan, splits, marks),
        reason=reason if marks.sum() < np.count_nonzero(pack != _NO_PACK) else "",
        unreadable=unreadable,
    )


def _relation(
    spark: SparkSession, info: Plan, packs: Any, ranges: _Ints, types: Mapping[str, str]
) -> Any:
    """Return some rows of packs as the JVM's relation.

    Args:
        spark: A classic session.
        info: The plan.
        packs: The JVM's `OpenedPacks`.
        ranges: The rows, from `_ranges`.
        types: As in `packed_files`.
    """
    format_ = planned_format(spark, info.format, info.format_options)
    if is_remote(info.packs[0].path):
        format_ = format_.remote()
    columns = [Column(name=name, type=type_) for name, type_ in types.items()]
    data, partition = schemas_of(info, columns)
    return packs_factory(spark).files(
        spark._jsparkSession,
        info.options.parallelism,
        format_,
        StructType([*data, *partition]).json(),
        packs,
        ranges.astype("<i8").tobytes(),
    )


def _without(plan: SplitPlan, splits: pa.Table, marks: _Marks) -> SplitPlan:
    """Return a plan of the splits that are not marked."""
    info = plan.info
    if marks.all():
        return SplitPlan(info, plan.groups.slice(0, 0))
    group = np.repeat(np.arange(len(plan)), numbers_of(pc.list_value_length(plan.groups["splits"])))
    slots = info.options.parallelism
    return replace(plan, groups=regrouped(plan.groups, splits, group, ~marks, info, slots))


def _obstacle(info: Plan, reader: Reader, home: str | None) -> str:
    """Return why no file of a plan can be read from packs; an empty text if files can."""
    obstacle = obstacle_of(info, reader, home)
    if obstacle is not None:
        return obstacle[0]
    if info.options.strategy != "balanced":
        return f"strategy {info.options.strategy!r} reads files as another system does"
    names = {column.name for column in info.columns}
    for column in info.partition_columns:
        is_plain = column.type in _TYPES or column.type.startswith("decimal(")
        if column.name in names and not is_plain:
            return f"partition column {column.name!r} is of type {column.type}"
    return ""


def _fit(plan: SplitPlan, splits: pa.Table, *, has_filter: bool) -> _Marks:
    """Mark the splits whose rows Spark's own reader reads as planned from a pack as from the file."""
    fit: _Marks = np.asarray(alike_of(splits).fill_null(False), np.bool_)
    groups = np.ones(len(plan), np.bool_)
    if "cached_on" in plan.groups.column_names:
        groups &= np.asarray(pc.is_null(plan.groups["cached_on"]))
    if has_filter:
        groups &= np.asarray(pc.is_null(plan.groups["residual_filter"]))
    fit = fit & np.repeat(groups, numbers_of(pc.list_value_length(plan.groups["splits"])))
    partition = flat(splits["partition"])
    names = {column.name for column in plan.info.columns}
    for column in plan.info.partition_columns:
        if column.name in names and column.type == "date":
            # The calendar that a file states for its dates is also that of the pack's.
            days = pc.struct_field(partition, column.name).cast(pa.int32())
            fit &= numbers_of(days.fill_null(_FIRST_DAY - 1)) >= _FIRST_DAY
    return fit


def _lines(spark: SparkSession, info: Plan) -> str:
    uris = [hadoop_location(spark, one.path) for one in info.packs]
    return "\n".join(
        f"{escaped(uri or one.path)} {one.size_bytes} {one.row_count}"
        for uri, one in zip(uris, info.packs, strict=True)
    )


def _wanted_rows(info: Plan, splits: pa.Table, marks: _Marks) -> _Ints:
    """Return the pack, the first row and the number of rows of each marked split, in order.

    Raises:
        UnfitReadError: A pack lacks some of these rows, or two splits have the same.
    """
    # A number that is missing is no number of rows.
    columns = [splits[name].fill_null(-1) for name in ("pack", "pack_row", "row_count")]
    rows = np.stack([numbers_of(one).astype(np.int64)[marks] for one in columns])
    pack, begin, count = rows = rows[:, np.lexsort((rows[1], rows[0]))]
    row_counts = np.array([one.row_count for one in info.packs], np.int64)
    is_wrong = (pack < 0) | (pack >= len(row_counts)) | (begin < 0) | (count <= 0)
    is_wrong |= count > row_counts[np.where(is_wrong, 0, pack)] - begin
    is_wrong[1:] |= (pack[1:] == pack[:-1]) & (begin[1:] < begin[:-1] + count[:-1])
    if not is_wrong.any():
        return rows
    at = int(np.flatnonzero(is_wrong)[0])
    place = f"number {pack[at]} of {len(row_counts)}"
    if 0 <= pack[at] < len(row_counts):
        place = (
            f"{info.packs[pack[at]].path!r}, which has {count_text(row_counts[pack[at]], 'row')}"
        )
    raise UnfitReadError(
        f"plan {info.plan_id} of table {info.table!r} reads {count_text(count[at], 'row')} of a file "
        f"from row {begin[at]:,} on in pack {place}: some are not there, or are those of another file",
        f"set `{SETTING}` to false to read the files themselves",
    )


def _ranges(pack: _Ints, begin: _Ints, count: _Ints) -> _Ints:
    """Return the ranges of rows: of each the pack, the first row, the one after its last, its files."""
    end = begin + count
    is_first = np.ones(len(pack), np.bool_)
    is_first[1:] = (np.diff(pack) != 0) | (begin[1:] != end[:-1])
    first = np.flatnonzero(is_first)
    last = np.append(first[1:], len(pack)) - 1
    return np.stack([pack[first], begin[first], end[last], last + 1 - first], axis=1)
