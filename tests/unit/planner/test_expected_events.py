"""What is expected of partitions, judging by the last days of their table."""

from __future__ import annotations

import numpy as np
import pytest

from windrow_service.planner.maintenance.reading import Expectation, expected_events

DAYS = 14


def daily(curve: list[int], partitions: int = 40) -> tuple[list[float], list[list[int]]]:
    """Return ages and events of partitions, each of which has the events of its age, day by day."""
    of_age = curve + [curve[-1]] * (partitions + DAYS)
    events = [
        [of_age[age - day - 1] if age > day else 0 for day in range(DAYS)]
        for age in range(partitions)
    ]
    return [float(age) for age in range(partitions)], events


def expected(ages: list[float], events: list[list[int]], horizon_days: int = 30) -> Expectation:
    return expected_events(
        np.zeros(len(ages), np.int64), np.array(ages), np.array(events), horizon_days
    )


def test_steady_reads_are_expected_to_go_on() -> None:
    expectation = expected([40.0], [[10] * DAYS])

    assert expectation.per_day.tolist() == pytest.approx([10.0])
    assert expectation.lasting_days.tolist() == pytest.approx([30.0])


def test_a_new_partition_is_expected_to_be_read_as_those_before_it_were() -> None:
    ages, events = daily([100, 10, 0])

    expectation = expected(ages, events)

    assert expectation.per_day[:2].tolist() == pytest.approx([100.0, 10.0])
    assert expectation.lasting_days[:2].tolist() == pytest.approx([1.1, 1.0])


def test_a_day_that_has_just_begun_does_not_count_as_a_whole_one() -> None:
    ages, events = daily([96, 0, 0])
    ages[0], events[0][0] = 0.25, 24

    expectation = expected(ages, events)

    # Three quarters of the next day are still the first of the partition.
    assert expectation.per_day[0] == pytest.approx(72.0)


def test_old_partitions_that_nobody_reads_are_not_expected_to_be_read() -> None:
    ages, events = daily([100, 10, 0])

    expectation = expected(ages, events)

    assert expectation.per_day[20] < 0.1


def test_a_partition_that_is_read_more_than_others_of_its_age_will_be() -> None:
    ages, events = daily([20] * 30)
    events[25] = [200] * DAYS

    expectation = expected(ages, events)

    assert expectation.per_day[25] > 5 * expectation.per_day[26]


def test_the_last_days_count_more_than_those_before() -> None:
    events = [[20] * 3 + [0] * 11, [0] * 11 + [20] * 3]

    expectation = expected_events(np.array([0, 1]), np.array([40.0, 40.0]), np.array(events), 30)

    assert expectation.per_day[0] > 5 * expectation.per_day[1]


def test_tables_do_not_mix() -> None:
    both = expected_events(
        np.array([0, 1]), np.array([40.0, 40.0]), np.array([[5] * DAYS, [50] * DAYS]), 30
    )

    assert both.per_day.tolist() == pytest.approx([5.0, 50.0])


def test_nothing_is_expected_of_no_partitions() -> None:
    expectation = expected_events(
        np.zeros(0, np.int64), np.zeros(0), np.zeros((0, DAYS), np.int64), 30
    )

    assert (len(expectation.per_day), len(expectation.lasting_days)) == (0, 0)
