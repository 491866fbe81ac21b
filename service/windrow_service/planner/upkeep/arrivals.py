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


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrivalLimits:
    """How much of the arrivals is wanted.

    Attributes:
        days: Number of days, the last of which is that of the latest file.
        partitions: Most partitions whose arrivals are told day by day.
        rows: Most rows of the latest arrivals, and of the latest late ones.
    """

    days: int
    partitions: int
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrived:
    """Files that came into a partition on one day; `folder` is relative to the table's location."""

    folder: str
    day: date
    files: int
    size_bytes: int
    late_files: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrivals:
    """Files of partitions by the day (in UTC) on which they came: as much as a page shows.

    Attributes:
        days: The days, one after the other; the last one is that of the latest file.
        newest: The partitions into which files came last, in order of names, each with its
            arrivals in order of days.
        latest: The latest arrivals, the latest day first.
        late: The latest arrivals with late files: files that came more than a day after the day
            that their folder names; files that rewrites made are not late.
        count: Number of all arrivals.
        late_partitions: For each day, the number of partitions into which files came late.
        late_files: For each day, the number of these files.
        names_days: Whether any folder names a day.
    """

    days: Sequence[date]
    newest: Sequence[tuple[str, Sequence[Arrived]]]
    latest: Sequence[Arrived]
    late: Sequence[Arrived]
    count: int
    late_partitions: Sequence[int]
    late_files: Sequence[int]
    names_days: bool


def find_arrivals(
    files: pa.Table, limits: ArrivalLimits, rewrites: Sequence[tuple[int, int]] = ()
) -> Arrivals:
    """Count the files of the latest days by the folder and day into which they came.

    Args:
        files: n files, with the schema of `columns.inventory_schema`.
        limits: How much to return.
        rewrites: First and last nanosecond, since 1970, of rewrites of what had come before.

    Complexity: O(n * (log(n) + len(rewrites))) time and O(n) memory, on columns.
    """
    times: Ints = files["mtime_ns"].to_numpy()
    names = numbered_folders(files)
    folder: Ints = names.indices.to_numpy(zero_copy_only=False)
    due = days_of(names.dictionary)
    day = times // _DAY_NS
    end = int(day.max(initial=limits.days - 1))
    recent = np.flatnonzero(day > end - limits.days)
    times, day, folder = times[recent], day[recent], folder[recent]
    is_late: Bools = day > due[folder] + 1
    for first, last in rewrites:
        is_late &= (times < first) | (times > last)
    cells = _Cells.of(
        names.dictionary,
        end - limits.days + 1,
        (folder.astype(np.int64), day, files["size_bytes"].to_numpy()[recent], is_late),
    )
    is_late_cell = cells.late_files > 0
    of_late = cells.day[is_late_cell] - cells.begin
    return Arrivals(
        days=np.arange(cells.begin, end + 1).astype("datetime64[D]").tolist(),
        newest=cells.newest(limits.partitions),
        latest=cells.latest(np.arange(len(cells.day)), limits.rows),
        late=cells.latest(np.flatnonzero(is_late_cell), limits.rows),
        count=len(cells.day),
        late_partitions=np.bincount(of_late, minlength=limits.days).tolist(),
        late_files=_sums(of_late, cells.late_files[is_late_cell], limits.days).tolist(),
        names_days=bool((due < _NO_DAY).any()),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Cells:
    """The c folders and days into which files came, in order of folders, then of days.

    There is no row for the others: most of a million folders get files on one day of many.

    Attributes:
        names: Names of all folders, in order of paths.
        begin: The first day, since 1970.
        folder: Positions in `names`.
        day: Days since 1970.
        files: Numbers of files.
        size_bytes: Bytes of them.
        late_files: Numbers of late ones.
    """

    names: pa.StringArray
    begin: int
    folder: Ints
    day: Ints
    files: Ints
    size_bytes: Ints
    late_files: Ints

    @classmethod
    def of(
        cls, names: pa.StringArray, begin: int, columns: tuple[Ints, Ints, Ints, Bools]
    ) -> _Cells:
        """Count files of which `columns` has the folder, the day, the size, and whether it is late."""
        folder, day, sizes, is_late = columns
        # One number for both: folders are numbered in order of paths.
        width = int(day.max(initial=begin)) - begin + 1
        both, cell, files = np.unique(
            folder * width + day - begin, return_inverse=True, return_counts=True
        )
        cell = cell.reshape(-1)
        return cls(
            names=names,
            begin=begin,
            folder=both // width,
            day=both % width + begin,
            files=files,
            size_bytes=_sums(cell, sizes, len(both)),
            late_files=_sums(cell, is_late, len(both)),
        )

    def latest(self, at: Ints, limit: int) -> Sequence[Arrived]:
        """Return the latest of some cells, in order of folders within a day."""
        return self._rows(at[_least(-self.day[at], at, limit)])

    def newest(self, limit: int) -> Sequence[tuple[str, Sequence[Arrived]]]:
        """Return the cells of the folders with the latest days, among those of the last names."""
        is_last = np.append(self.folder[1:] != self.folder[:-1], True)[: len(self.folder)]
        last = np.flatnonzero(is_last)
        choice = np.sort(last[_least(-self.day[last], -self.folder[last], limit)])
        result = []
        for folder in self.folder[choice].tolist():
            begin, end = np.searchsorted(self.folder, [folder, folder + 1]).tolist()
            rows = self._rows(np.arange(begin, end))
            result.append((rows[0].folder, rows))
        return result

    def _rows(self, at: Ints) -> Sequence[Arrived]:
        columns = (
            self.names.take(pa.array(self.folder[at])).to_pylist(),
            self.day[at].astype("datetime64[D]").tolist(),
            *(one[at].tolist() for one in (self.files, self.size_bytes, self.late_files)),
        )
        return [
            Arrived(folder=folder, day=day, files=files, size_bytes=size, late_files=late)
            for folder, day, files, size, late in zip(*columns, strict=True)
        ]


def _least(first: Ints, second: Ints, limit: int) -> Ints:
    """Return the positions of the pairs that come first, in their order."""
    return np.lexsort((second, first))[:limit]


def _sums(group: Ints, values: npt.NDArray[np.int64] | Bools, count: int) -> Ints:
    """Return the sum of each group's values, exact since no total is above 2^53."""
    return np.bincount(group, values, count).astype(np.int64)


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
