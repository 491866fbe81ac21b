"""Why a plan's groups are as they are: the reason for each, and how full they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from windrow_service.planner.caching.cached import HELD
from windrow_service.planner.plan import GroupedSplits
from windrow_service.planner.splits import Bools, Ints

Reason: TypeAlias = Literal["cacheable", "large", "no_location", "small"]
FILL_BINS = 10


@dataclass(frozen=True, slots=True)
class Tally:
    """A number of groups, with their splits and bytes."""

    groups: int
    splits: int
    size_bytes: int


def tally_reasons(plan: GroupedSplits, max_split_size: int) -> Mapping[Reason, Tally]:
    """Count groups by reason; a group counts under the first reason that applies.

    * `cacheable`: it holds splits that are read where they are cached.
    * `large`: it is a single split of at least `max_split_size`, or a single piece of a file.
    * `no_location`: some hosts of the table are known, but the group prefers none.
    * `small`: all other groups.

    Args:
        plan: The groups.
        max_split_size: Most bytes of a group, as used to make the plan.
    """
    first = plan.offsets[:-1]
    splits = np.diff(plan.offsets)
    head = plan.splits.file[first]
    is_piece = plan.splits.length[first] < plan.files["size_bytes"].to_numpy()[head]
    is_located = np.diff(plan.host_offsets) > 0
    number = np.select(
        [
            _holds_cacheable(plan),
            (splits == 1) & (is_piece | (plan.size_bytes >= max_split_size)),
            ~is_located & bool(plan.splits.hosts.names),
        ],
        [0, 1, 2],
        3,
    )
    reasons: tuple[Reason, ...] = get_args(Reason)
    columns = [
        np.bincount(number, weights, len(reasons)).astype(np.int64).tolist()
        for weights in (None, splits, plan.size_bytes)
    ]
    return {
        reason: Tally(*of) for reason, of in zip(reasons, zip(*columns, strict=True), strict=True)
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementTally:
    """The cacheable files that are read at one worker.

    Attributes:
        host: The worker; None for files that no worker has room for.
        cached_files: Files that the worker holds already.
        cached_bytes: Planned bytes of those files.
        placed_files: Files that the worker does not hold yet.
        placed_bytes: Planned bytes of those files.
    """

    host: str | None
    cached_files: int
    cached_bytes: int
    placed_files: int
    placed_bytes: int


def tally_placements(plan: GroupedSplits) -> list[PlacementTally]:
    """Count cacheable files by the worker that reads them, ordered by host."""
    cached = plan.cached
    count = len(plan.files)
    is_planned = np.bincount(plan.splits.file, minlength=count) > 0
    planned_bytes = np.bincount(plan.splits.file, plan.splits.length, count).astype(np.int64)
    rows = np.flatnonzero(cached.cacheable & is_planned)
    hosts = (*cached.workers, None)
    # NO_HOST (-1) becomes the last position.
    place = cached.worker[rows] % len(hosts)
    is_held = cached.choice[rows] == HELD
    files, size_bytes, held_files, held_bytes = (
        np.bincount(place, weights, len(hosts)).astype(np.int64).tolist()
        for weights in (None, planned_bytes[rows], is_held, planned_bytes[rows] * is_held)
    )
    return [
        PlacementTally(
            host=host,
            cached_files=held_files[at],
            cached_bytes=held_bytes[at],
            placed_files=files[at] - held_files[at],
            placed_bytes=size_bytes[at] - held_bytes[at],
        )
        for at, host in enumerate(hosts)
        if files[at]
    ]


def fill_histogram(plan: GroupedSplits, max_split_size: int) -> Ints:
    """Count groups by how full they are, in `FILL_BINS` equal bins; the last includes full ones."""
    # Integer arithmetic: a group of exactly three tenths must not fall in the bin below.
    step = plan.size_bytes * FILL_BINS // max_split_size
    return np.bincount(np.minimum(step, FILL_BINS - 1), minlength=FILL_BINS)


def _holds_cacheable(plan: GroupedSplits) -> Bools:
    cacheable = plan.cached.cacheable[plan.splits.file]
    if not cacheable.any():
        return np.zeros(len(plan), np.bool_)
    return np.logical_or.reduceat(cacheable, plan.offsets[:-1])
