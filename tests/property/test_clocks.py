"""A database without a server believes no clock that was set wrongly after it noted the time."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from tests.support.laws import examples
from windrow_service.store.clock import Note, Run, believed, is_worth_noting

_START = datetime(2026, 11, 28, tzinfo=timezone.utc)
_MINUTE_S, _DAY_S, _YEAR_S = 60.0, 86_400.0, 366 * 86_400.0
# How far a process's clock is off: not at all, a little, or so far that leases and days suffer.
_SLIGHT_S = st.just(0.0) | st.floats(-50, 50)
_GROSS_S = st.sampled_from([-1, 1]).flatmap(
    lambda sign: st.floats(3 * _MINUTE_S, 3 * _YEAR_S).map(lambda seconds: sign * seconds)
)
_PAUSE_S = st.sampled_from([0.0, 1.0, 5.0, 3_599.0, 3_601.0]) | st.floats(0, 100 * _DAY_S)
# Looks at the clock by processes, each so long after the one before.
_LOOKS = st.lists(st.tuples(_PAUSE_S, _SLIGHT_S | _GROSS_S), max_size=30)


class Machine:
    """A machine whose true time is known, and the note in its database."""

    def __init__(self, note: Note | None, true_s: float, started_s: float = 0.0) -> None:
        self.note = note
        self.true_s = true_s
        self.started_s = started_s

    def look(self, off_s: float) -> float:
        """Let a process look whose clock is off, and return by how much what it believes is off."""
        run = Run(f"run of {self.started_s}", self.true_s - self.started_s)
        at = believed(self.note, run, _time(self.true_s + off_s))
        if is_worth_noting(self.note, run, at):
            self.note = Note(run, at)
        return (at - _time(self.true_s)).total_seconds()


def _time(seconds: float) -> datetime:
    return _START + timedelta(seconds=seconds)


@examples(400)
@given(_LOOKS)
def test_processes_of_one_run_believe_what_the_first_has_noted_whatever_their_clocks_show(
    looks: list[tuple[float, float]],
) -> None:
    machine = Machine(None, 1_000.0)
    machine.look(0.0)

    for pause_s, off_s in looks:
        machine.true_s += pause_s
        # Slight errors may be followed, slowly, but never as far as a minute.
        assert abs(machine.look(off_s)) <= _MINUTE_S


@examples(200)
@given(st.floats(0, 2 * _YEAR_S), _SLIGHT_S | _GROSS_S)
def test_a_machine_that_was_off_is_believed_unless_its_clock_went_back_or_on_by_over_a_year(
    off_for_s: float, off_s: float
) -> None:
    machine = Machine(None, 1_000.0)
    machine.look(0.0)
    machine.true_s += off_for_s
    machine.started_s = machine.true_s - 10.0

    error_s = machine.look(off_s)

    shown_s = off_for_s + off_s
    if -_MINUTE_S <= shown_s <= _YEAR_S:
        assert abs(error_s - off_s) < 1e-3
    else:
        # Time goes on from the note, and nothing expires that has not.
        assert abs(error_s + off_for_s) < 1e-3


@examples(100)
@given(st.floats(-50, 50))
def test_a_clock_that_is_corrected_a_little_is_followed(off_s: float) -> None:
    machine = Machine(None, 1_000.0)
    machine.look(0.0)

    for _ in range(60):
        machine.true_s += 5.0
        error_s = machine.look(off_s)

    assert abs(error_s - off_s) < 1e-3
