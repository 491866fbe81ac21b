"""When files came into partitions, and which of them came late."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from windrow_service.planner.folders import numbered_folders
from windrow_service.planner.splits import Bools, Ints

_DAY_NS = 86_400 * 10**9
# A day in the value of a partition, or in three values one below the other.
_DAY = r"(?:^|[=/])(?P<y>[0-9]{4})-?(?P<m>[0-9]{2})-?(?P<d>[0-9]{2})(?:$|[^0-9])"
_PARTS = (
    r"(?i)(?:^|/)(?:year|y|yyyy)=(?P<y>[0-9]{4})/(?:month|m|mm)=(?P<m>[0-9]{1,2})"
    r"/(?:day|d|dd)=(?P<d>[0-9]{1,2})(?:/|$)"
)
# The day of partitions that name none: nothing is later than that.
_NO_DAY = np.iinfo(np.int64).max - 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Arrivals:
    """Files of partitions by the day (in UTC) on which they came.

    Attributes:
        days: The d days, one after the other; the last one is that of the latest file.
        folders: The p folders into which files came on those days, in order of paths.
        files: p x d numbers of files.
        size_bytes: p x d bytes of them.
        late_files: p x d numbers of files that came more than a day after the day that their
            folder names; files that rewrites made are not late.
        names_days: Whether any folder names a day.
    """

    days: Sequence[date]
    folders: Sequence[str]
    files: Ints
    size_bytes: Ints
    late_files: Ints
    names_days: bool


def find_arrivals(
    files: pa.Table, day_count: int, rewrites: Sequence[tuple[int, int]] = ()
) -> Arrivals:
    """Count the files of the latest days by the folder and day into which they came.

    Args:
        files: n files, with the schema of `columns.inventory_schema`.
        day_count: Number of days, the last of which is that of the latest file.
        rewrites: First and last nanosecond, since 1970, of rewrites of what had come before.

    Complexity: O(n * (1 + len(rewrites))), on columns.
    """
    times: Ints = files["mtime_ns"].to_numpy()
    sizes: Ints = files["size_bytes"].to_numpy()
    names = numbered_folders(files)
    folder = names.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    due = days_of(names.dictionary)
    day = times // _DAY_NS
    is_late: Bools = day > due[folder] + 1
    for first, last in rewrites:
        is_late &= (times < first) | (times > last)
    end = int(day.max(initial=day_count - 1))
    is_recent = day > end - day_count
    recent, row = np.unique(folder[is_recent], return_inverse=True)
    cell = row.reshape(-1) * day_count + day[is_recent] - (end - day_count + 1)
    shape = (len(recent), day_count)

    def counted(weights: npt.NDArray[np.int64] | Bools | None = None) -> Ints:
        counts = np.bincount(cell, weights, shape[0] * shape[1])
        return counts.astype(np.int64).reshape(shape)

    return Arrivals(
        days=np.arange(end - day_count + 1, end + 1).astype("datetime64[D]").tolist(),
        folders=names.dictionary.take(pa.array(recent)).to_pylist(),
        files=counted(),
        size_bytes=counted(sizes[is_recent]),
        late_files=counted(is_late[is_recent]),
        names_days=bool((due < _NO_DAY).any()),
    )


def days_of(folders: pa.StringArray) -> Ints:
    """Return the day that each folder names, since 1970; one far ahead if it names none."""
    days = pc.coalesce(_days(folders, _DAY), _days(folders, _PARTS))
    return np.asarray(pc.fill_null(days, _NO_DAY).to_numpy(zero_copy_only=False), np.int64)


def _days(folders: pa.StringArray, pattern: str) -> pa.Int64Array:
    parts = pc.extract_regex(folders, pattern)
    year, month, day = (pc.struct_field(parts, name) for name in "ymd")
    text = pc.binary_join_element_wise(
        year, pc.utf8_lpad(month, 2, "0"), pc.utf8_lpad(day, 2, "0"), "-"
    )
    times = pc.strptime(text, format="%Y-%m-%d", unit="s", error_is_null=True)
    return pc.divide(times.cast(pa.int64()), 86_400)
