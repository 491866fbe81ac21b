"""What rewrites of tables cost and gain, judging by their receipts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from windrow_core.models import RealisedGain, WorkOutcome
from windrow_service.planner.maintenance.corrections import Receipts
from windrow_service.planner.upkeep.compaction import rewrite_seconds
from windrow_service.planner.upkeep.packs import pack_seconds
from windrow_service.usecases.upkeep.overview import opening_seconds

# Of each table, the newest: machines change.
MOST_RECEIPTS = 12


class Rewrite(NamedTuple):
    """A rewrite that is done.

    Attributes:
        table: Number of its table.
        target_bytes: Target size of a file.
        outcome: What it did.
        gain: What it gained, if that is known.
        packs: Whether files were packed.
    """

    table: int
    target_bytes: int
    outcome: WorkOutcome
    gain: RealisedGain | None
    packs: bool


def receipts_of(rewrites: Iterable[Rewrite]) -> Receipts:
    """Return what rewrites should have cost and gained by the cost model, and what they did.

    The model is given what was really rewritten, which may be less than was planned.
    """
    rows = [
        (
            one.table,
            *(one.outcome.files_before, one.outcome.bytes_before, one.outcome.files_after),
            one.target_bytes,
            one.outcome.core_seconds,
            np.nan if one.gain is None else one.gain.gain_seconds,
            one.packs,
        )
        for one in rewrites
        if one.outcome.files_before
    ]
    columns = np.array(rows, np.float64).T if rows else np.zeros((8, 0))
    table, files, size_bytes, becomes, target = columns[:5].astype(np.int64)
    return Receipts(
        table=table,
        predicted_cost=np.where(
            columns[7] > 0,
            pack_seconds(files, size_bytes),
            rewrite_seconds(files, size_bytes, becomes, target),
        ),
        cost=columns[5],
        predicted_gain=opening_seconds(1) * np.maximum(files - becomes, 0),
        gain=columns[6],
    )
