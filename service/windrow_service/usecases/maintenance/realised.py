"""What finished work has gained: later plans, compared with the same plans before."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from windrow_core.models import RealisedGain
from windrow_service.usecases.maintenance.reads import Read
from windrow_service.usecases.maintenance.work import WorkRecord

# Reads that are compared, on either side.
_FEWEST, _MOST = 3, 20


def realised_gain(record: WorkRecord, reads: Sequence[Read]) -> RealisedGain | None:
    """Return what reads of a table save since work was done; None if too few can be compared.

    Only reads of the whole table are compared: they have all of the gain that was predicted, and
    others, such as those of the newest days, are of other files each time.

    Args:
        record: The work, which is done.
        reads: Reads of the table, the oldest first.
    """
    whole = [one for one in reads if one.filter is None and one.partitions is None]
    before = [one for one in whole if one.at < record.first_at][-_MOST:]
    after = [one for one in whole if one.at > record.last_at][:_MOST]
    if len(before) < _FEWEST or len(after) < _FEWEST:
        return None
    return RealisedGain(
        reads=len(after),
        files_before=_mean([one.files for one in before]),
        files_after=_mean([one.files for one in after]),
        gain_seconds=_mean([one.seconds for one in before]) - _mean([one.seconds for one in after]),
        predicted_seconds=record.body.prediction.gain_seconds,
    )


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))
