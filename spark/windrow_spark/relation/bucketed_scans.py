"""Scans of bucketed tables in which each task reads one bucket, so that Spark need not shuffle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow_calls.plans import SplitPlan
from windrow_tables.groups.cutting import splits_of

# Only splits of different buckets, or cached on different workers, are in different groups.
WHOLE_BUCKETS: Mapping[str, Any] = {
    "strategy": "spark",
    "max_split_size": 2**50,
    "max_small_splits_grouped": 10_000_000,
    "max_initial_splits": 0,
    "open_file_cost": 0,
    "parallelism": 1,
    "cached_splits": "by_worker",
}

# Names that Spark gives to files. Hive, whose hash is another, calls them `000001_0`.
_SPARKS_NAME = r"(^|/)part-[^/]*$"


def are_buckets_certain(plan: SplitPlan, count: int) -> bool:
    """Return whether all files are Spark's, and each is known to be in one of `count` buckets.

    Args:
        plan: A plan of all files of a snapshot with the options `WHOLE_BUCKETS`.
        count: The number of buckets.
    """
    buckets = plan.groups["bucket"]
    if not len(buckets) or buckets.null_count or pc.max(buckets).as_py() >= count:
        return False
    info = plan.info
    if not info.reading.is_plain or info.sort_columns:
        return False
    paths = splits_of(plan.groups)["path"].cast(pa.string())
    return bool(pc.all(pc.match_substring_regex(paths, _SPARKS_NAME)).as_py())


def one_group_per_bucket(groups: pa.Table, count: int) -> pa.Table:
    """Return as many groups as there are buckets, in order; some may have no splits.

    Args:
        groups: The groups of a scan, each of splits of one bucket.
        count: The number of buckets.
    """
    if "cached_on" in groups.column_names:
        # Files of a bucket may be cached on several hosts, of which a task runs on one.
        groups = groups.drop_columns("cached_on")
    bucket = np.asarray(groups["bucket"], np.int64)
    groups = groups.take(pa.array(np.argsort(bucket, kind="stable")))
    sizes = np.asarray(pc.list_value_length(groups["splits"]), np.int64)
    bucket = np.sort(bucket, kind="stable")
    splits = np.bincount(bucket, sizes, count).astype(np.int64)
    offsets = pa.array(np.concatenate([[0], np.cumsum(splits)]), pa.int32())
    lists = pa.ListArray.from_arrays(offsets, splits_of(groups).to_struct_array().combine_chunks())
    first = np.searchsorted(bucket, np.arange(count)).clip(0, max(0, len(groups) - 1))
    chosen = groups.take(pa.array(first))
    place = groups.column_names.index("splits")
    type_ = groups.schema.field("splits").type
    return chosen.set_column(place, "splits", lists.cast(type_))
