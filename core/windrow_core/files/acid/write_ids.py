"""The write ids that a reader of a transactional table sees, as Hive's metastore writes them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from windrow_core.errors import Fault, StatedError

_FORM = "table:highest:least_open:open,…:aborted,…"
_MAX = 2**63 - 1
_MAX_LISTED = 1_000_000
_NUMBER = re.compile(r"[0-9]{1,19}")

Share: TypeAlias = Literal["all", "some", "none"]
_Ints: TypeAlias = npt.NDArray[np.int64]


@dataclass(eq=False)
class WriteIdsError(StatedError):
    """Valid write ids cannot be read."""

    fault = Fault.INVALID
    slug = "invalid-write-ids"
    text: str
    reason: str

    def __str__(self) -> str:
        excerpt = self.text if len(self.text) <= 100 else f"{self.text[:97]}..."
        return (
            f"{excerpt!r} is not a list of valid write ids: {self.reason}; give Hive's "
            f"ValidWriteIdList of this table, {_FORM}"
        )


@dataclass(frozen=True, slots=True, eq=False)
class WriteIds:
    """The write ids that a reader sees: those up to the highest, without open and aborted ones.

    Attributes:
        highest: No higher id is seen.
        least_open: The lowest open id, which no compaction may pass; 2**63 - 1 if none is open.
        open: Ids of transactions that had not ended, ascending.
        aborted: Ids of transactions that were undone, ascending.
    """

    highest: int
    least_open: int
    open: _Ints
    aborted: _Ints

    @classmethod
    def parse(cls, text: str) -> WriteIds:
        """Read `table:highest:least_open:open,…:aborted,…`; the last parts may be missing.

        Raises:
            WriteIdsError: The text has another form.
        """
        if "$" in text:
            raise WriteIdsError(text, "it lists several tables")
        parts = text.strip().split(":")
        if not 3 <= len(parts) <= 5:
            raise WriteIdsError(text, f"it has {len(parts)} parts")
        highest, least_open = (_number(text, part) for part in parts[1:3])
        lists = [part.split(",") if part else [] for part in (*parts[3:], "", "")[:2]]
        if sum(map(len, lists)) > _MAX_LISTED:
            raise WriteIdsError(text, f"it lists more than {_MAX_LISTED:,} ids")
        open_ids, aborted = (
            np.unique(np.array([_number(text, one) for one in ids], np.int64)) for ids in lists
        )
        both = np.intersect1d(open_ids, aborted)
        if len(both):
            raise WriteIdsError(text, f"{both[0]} is both open and aborted")
        if len(open_ids):
            least_open = min(least_open, int(open_ids[0]))
        return cls(highest, least_open, open_ids, aborted)

    def are_valid(self, ids: _Ints) -> npt.NDArray[np.bool_]:
        """Return which ids are seen."""
        valid: npt.NDArray[np.bool_] = ids <= self.highest
        for left_out in (self.open, self.aborted):
            if len(left_out):
                at = np.minimum(np.searchsorted(left_out, ids), len(left_out) - 1)
                valid &= left_out[at] != ids
        return valid

    def is_valid(self, write_id: int) -> bool:
        """Return whether one id is seen."""
        return bool(self.are_valid(np.array([write_id], np.int64))[0])

    def share_of(self, least: int, most: int) -> Share:
        """Return whether all, some or none of a range of ids are seen."""
        width = min(most, self.highest) - least + 1
        if width <= 0:
            return "none"
        left_out = _count(self.open, least, most) + _count(self.aborted, least, most)
        # Listed ids above the highest were left out twice.
        beyond = _count(self.open, self.highest + 1, most)
        beyond += _count(self.aborted, self.highest + 1, most)
        left = width - left_out + beyond
        if left <= 0:
            return "none"
        return "all" if left == most - least + 1 else "some"

    def has_unfinished(self, least: int, most: int) -> bool:
        """Return whether a range has ids whose transactions may still commit or abort."""
        return most > self.highest or _count(self.open, least, most) > 0

    def fits_base(self, write_id: int) -> bool:
        """Return whether all rows that a compaction put into a base up to this id are seen."""
        return write_id < self.least_open and write_id <= self.highest


def _count(ids: _Ints, least: int, most: int) -> int:
    if most < least:
        return 0
    return int(np.searchsorted(ids, most, "right") - np.searchsorted(ids, least, "left"))


def _number(text: str, part: str) -> int:
    if not _NUMBER.fullmatch(part) or int(part) > _MAX:
        excerpt = part if len(part) <= 30 else f"{part[:27]}..."
        raise WriteIdsError(text, f"{excerpt!r} is not a write id")
    return int(part)
