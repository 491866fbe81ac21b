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
from windrow_core.files.arrays import flat, numbers_of
from windrow_core.files.schemes import is_remote
from windrow_core.models import Column, Plan
from windrow_spark.hadoop import hadoop_location
from windrow_spark.relation import requests
from windrow_spark.relation.division import Reader, alike_of, obstacle_of, regrouped
from windrow_spark.relation.java_classes import packs_factory, planned_format
from windrow_spark.relation.native import escaped, schemas_of
from windrow_spark.relation.pins import Pin
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
    unreadable = []
    packs = _lines(spark, info) if marks.any() else []
    if packs:
        why = packs_factory(spark).why(spark._jsparkSession, "\n".join(packs)).split("\n")
        is_lost = np.array([bool(why[at]) for at in range(len(packs))], np.bool_)
        if is_lost.any():
            unreadable = [info.packs[at].path for at in np.flatnonzero(is_lost)]
            at = int(np.flatnonzero(is_lost)[0])
            reason = f"pack {info.packs[at].path} cannot be read: {why[at]}"
            marks &= ~is_lost[pack]
    if not marks.any():
        return Packed(relation=None, files=0, rest=plan, reason=reason, unreadable=unreadable)
    rest = plan
    if marks.all():
        rest = SplitPlan(info, plan.groups.slice(0, 0))
    else:
        group = np.repeat(
            np.arange(len(plan)), numbers_of(pc.list_value_length(plan.groups["splits"]))
        )
        slots = info.options.parallelism
        rest = replace(plan, groups=regrouped(plan.groups, splits, group, ~marks, info, slots))
    row, count = (numbers_of(splits[name].fill_null(0)) for name in ("pack_row", "row_count"))
    ranges = _ranges(pack[marks], row[marks], count[marks])
    format_ = planned_format(spark, info.format, info.format_options)
    if is_remote(info.packs[0].path):
        format_ = format_.remote()
    columns = [Column(name=name, type=type_) for name, type_ in types.items()]
    data, partition = schemas_of(info, columns)
    relation = packs_factory(spark).files(
        spark._jsparkSession,
        info.options.parallelism,
        format_,
        StructType([*data, *partition]).json(),
        "\n".join(packs),
        ranges.astype("<i8").tobytes(),
    )
    return Packed(
        relation=relation,
        files=int(marks.sum()),
        rest=rest,
        reason=reason if marks.sum() < np.count_nonzero(pack != _NO_PACK) else "",
        unreadable=unreadable,
    )


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


def _lines(spark: SparkSession, info: Plan) -> list[str]:
    uris = [hadoop_location(spark, one.path) for one in info.packs]
    return [
        f"{escaped(uri or one.path)} {one.size_bytes} {one.row_count}"
        for uri, one in zip(uris, info.packs, strict=True)
    ]


def _ranges(pack: _Ints, row: _Ints, count: _Ints) -> _Ints:
    """Return the ranges of rows: of each the pack, the first row, the one after its last, its files."""
    order = np.lexsort((row, pack))
    pack, begin = pack[order], row[order]
    end = begin + count[order]
    is_first = np.ones(len(pack), np.bool_)
    is_first[1:] = (np.diff(pack) != 0) | (begin[1:] != end[:-1])
    first = np.flatnonzero(is_first)
    last = np.append(first[1:], len(pack)) - 1
    return np.stack([pack[first], begin[first], end[last], last + 1 - first], axis=1)
