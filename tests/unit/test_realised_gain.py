"""What later reads say about finished work, while others write to the table and maintain it."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest

from windrow_core.models import WorkOutcome, WorkPrediction
from windrow_service.planner.policy import DEFAULT_OPEN_FILE_COST, READ_BYTES_PER_SECOND
from windrow_service.usecases.maintenance.reads import Read
from windrow_service.usecases.maintenance.realised import realised_gain
from windrow_service.usecases.maintenance.work import WorkBody, WorkRecord

NOON = datetime(2026, 11, 1, 12, tzinfo=timezone.utc)
MINUTE = timedelta(minutes=1)
OPEN_S = DEFAULT_OPEN_FILE_COST / READ_BYTES_PER_SECOND
WORK = WorkRecord(
    number=1,
    table="t",
    state="done",
    first_at=NOON,
    last_at=NOON + MINUTE,
    body=WorkBody(
        folders=["ds=1"],
        folder_bytes=[1],
        target_file_size=2**27,
        min_files=2,
        readers_may_see_both=False,
        prediction=WorkPrediction(
            partitions=1,
            files=1_001,
            becomes=1,
            size_bytes=1,
            cost_seconds=1.0,
            gain_seconds=1_000 * OPEN_S,
            reads_per_day=1.0,
            saved_seconds=1.0,
            score=1.0,
        ),
        text="",
        outcome=WorkOutcome(files_before=1_001, files_after=1),
    ),
)


def read(minutes: float, files: float, *, filter: str | None = None) -> Read:
    """Return a read so long after noon, of so many files."""
    return Read(
        at=NOON + minutes * MINUTE,
        filter=filter,
        partitions=None,
        files=int(files),
        seconds=files * OPEN_S,
    )


def fewer(reads: list[Read], work: list[WorkRecord] | None = None) -> float | None:
    """Return how many files fewer reads have, judging by the gain."""
    gain = realised_gain(WORK, work or [WORK], reads)
    return None if gain is None else gain.gain_seconds / OPEN_S


def test_the_gain_is_what_reads_of_the_whole_table_save() -> None:
    reads = [read(at, 1_500) for at in (-3, -2, -1)] + [read(at, 700) for at in (2, 3, 4)]
    filtered = [read(at, 5, filter="ds = '2026-11-01'") for at in (-1.5, 1.5, 2.5)]

    gain = realised_gain(WORK, [WORK], sorted(reads + filtered, key=lambda one: one.at))

    assert gain is not None
    assert (gain.reads, gain.files_before, gain.files_after) == (3, 1_500, 700)
    assert gain.gain_seconds == pytest.approx(800 * OPEN_S)
    assert gain.predicted_seconds == pytest.approx(1_000 * OPEN_S)


def test_nothing_is_said_until_three_reads_on_either_side_can_be_compared() -> None:
    before, after = [read(at, 9) for at in (-3, -2, -1)], [read(at, 9) for at in (2, 3)]

    assert fewer(before + after) is None
    assert fewer([*before[1:], *after, read(4, 9)]) is None


def test_files_that_are_written_meanwhile_do_not_lessen_the_gain() -> None:
    # Fifty files come each minute.
    reads = [read(at, 1_500 + 50 * at) for at in range(-9, 0)]
    reads += [read(at, 500 + 50 * at) for at in range(2, 12)]

    assert fewer(reads) == pytest.approx(1_000)


def test_growth_that_was_seen_for_a_moment_is_not_expected_for_hours() -> None:
    later = [replace(one, at=one.at + timedelta(hours=9)) for one in (read(1, 500), read(2, 500))]
    reads = [read(-2, 1_500), read(-1.5, 1_510), read(-1, 1_520), *later, read(600, 500)]
    soon = [one for one in reads if one.at < NOON] + [read(at, 500) for at in (2, 2.5, 3)]

    growth = fewer(soon)

    assert growth is not None
    assert 1_010 < growth < 1_050
    assert fewer(reads) == pytest.approx(1_010, rel=0.1)


@pytest.mark.parametrize("end", [-5, 5])
def test_what_other_work_saved_is_no_gain_of_this_one(end: int) -> None:
    others = {
        "done": replace(WORK, number=2, last_at=NOON + end * MINUTE),
        "gave_up": replace(WORK, number=3, state="gave_up", last_at=NOON + end * MINUTE),
    }
    reads = [
        read(at, 4_000 - 1_000 * (at > 0) - 1_000 * (at > end)) for at in range(-9, 10) if at != end
    ]

    assert fewer(reads, [WORK, *others.values()]) == pytest.approx(1_000)
