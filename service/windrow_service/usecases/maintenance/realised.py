"""What finished work has gained: later plans, compared with the same plans before."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from windrow_core.models import RealisedGain
from windrow_service.planner.policy import DEFAULT_OPEN_FILE_COST, READ_BYTES_PER_SECOND
from windrow_service.planner.splits import Bools
from windrow_service.planner.writes.keys import Floats
from windrow_service.usecases.maintenance.reads import Read
from windrow_service.usecases.maintenance.work import WorkRecord

# Reads that are compared, on either side.
_FEWEST, _MOST = 3, 20


def realised_gain(
    record: WorkRecord, work: Sequence[WorkRecord], reads: Sequence[Read]
) -> RealisedGain | None:
    """Return what reads of a table save since work was done; None if too few can be compared.

    Only reads of the whole table are compared: they have all of the gain that was predicted, and
    others, such as those of the newest days, are of other files each time. What other work on the
    table has saved them is added to them again, and what writers have added to the table since is
    judged by how reads grew before and after.

    Args:
        record: The work, which is done.
        work: All work on the table.
        reads: Reads of the table, the oldest first.
    """
    whole = [one for one in reads if one.filter is None and one.partitions is None]
    before = [one for one in whole if one.at < record.first_at][-_MOST:]
    after = [one for one in whole if one.at > record.last_at][:_MOST]
    if len(before) < _FEWEST or len(after) < _FEWEST:
        return None
    both = [*before, *after]
    moments = np.array([one.at.timestamp() for one in both])
    seconds = np.array([one.seconds for one in both])
    others = [one for one in work if one.number != record.number]
    return RealisedGain(
        reads=len(after),
        files_before=float(np.mean([one.files for one in before])),
        files_after=float(np.mean([one.files for one in after])),
        gain_seconds=_drop(
            moments,
            seconds + _saved_before(moments, others),
            np.arange(len(both)) >= len(before),
        ),
        predicted_seconds=record.body.prediction.gain_seconds,
    )


def _saved_before(moments: Floats, work: Sequence[WorkRecord]) -> Floats:
    """Return what a read at each moment saves by the work that had been done until then."""
    outcomes = [
        (one.last_at.timestamp(), one.body.outcome.files_before - one.body.outcome.files_after)
        for one in work
        if one.state == "done" and one.body.outcome is not None and one.body.packing is None
    ]
    ends = np.array([end for end, _ in outcomes], np.float64)
    files = np.array([count for _, count in outcomes], np.float64)
    fewer = (ends < moments[:, None]) @ files
    return np.asarray(fewer * DEFAULT_OPEN_FILE_COST / READ_BYTES_PER_SECOND)


def _drop(moments: Floats, values: Floats, is_after: Bools) -> float:
    """Return by how much values dropped at once that otherwise grow evenly on both sides.

    They are taken to grow for no longer than they were seen to.
    """
    off, rise, span = moments.copy(), values.copy(), 0.0
    for side in (~is_after, is_after):
        off[side] -= moments[side].mean()
        rise[side] -= values[side].mean()
        span += float(np.ptp(moments[side]))
    variance = float(off @ off)
    growth = float(off @ rise) / variance if variance else 0.0
    apart = float(moments[is_after].mean() - moments[~is_after].mean())
    return float(values[~is_after].mean() + growth * min(apart, span) - values[is_after].mean())
