"""The health of a table goes by what its reads lose, not by how small it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.laws import examples
from windrow_service.planner.upkeep.health import HEALTHS, health_of

EXCESS, READS = st.integers(0, 10**8), st.integers(0, 10**7)


@pytest.mark.parametrize(
    ("excess", "reads", "health"),
    [
        # 487 KB in some files, of which Spark opens each in more time than it reads them.
        (40, 3_500, "good"),
        (499, 0, "good"),
        (500, 0, "fair"),
        (100, 3_499, "good"),
        (100, 3_500, "fair"),
        (9_999, 0, "fair"),
        (10_000, 0, "poor"),
        (4_200, 999, "fair"),
        (4_200, 1_000, "poor"),
        (0, 10**7, "good"),
    ],
)
def test_health_goes_by_files_opened_in_a_read_and_in_a_day(
    excess: int, reads: int, health: str
) -> None:
    assert health_of(excess, reads) == health


@given(excess=EXCESS, reads=READS, more_excess=EXCESS, more_reads=READS)
@examples(200)
def test_more_excess_files_and_more_reads_are_never_healthier(
    excess: int, reads: int, more_excess: int, more_reads: int
) -> None:
    before = HEALTHS.index(health_of(excess, reads))
    after = HEALTHS.index(health_of(excess + more_excess, reads + more_reads))

    assert before <= after
