"""Outcomes of each scheme, for an ideal hash and for Spark's own."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.plans.writes import EVEN, ZIPF, keys_of_days
from windrow_service.planner.writes.decide import Write, judge
from windrow_service.planner.writes.exact import files_per_key, pack
from windrow_service.planner.writes.keys import WriteKeys
from windrow_service.planner.writes.outcomes import Ideal
from windrow_service.planner.writes.schemes import (
    by_columns,
    dealt,
    exactly,
    ranged_by_hash,
    salted,
    scale_for,
)

# By scale: efficiency, collisions and severe collisions in percent.
IDEAL = {
    1: (63.22, 41.80, 12.69),
    2: (78.70, 22.92, 3.65),
    3: (85.05, 15.74, 1.70),
    5: (90.64, 9.66, 0.63),
    10: (95.17, 4.91, 0.16),
    20: (97.54, 2.48, 0.04),
}
# The same for Spark's hash of (day of 2018 as text, int), and the most keys in one task.
OF_SPARK = {
    1: (63.29, 40.87, 13.25, 7),
    2: (78.90, 22.92, 3.33, 4),
    3: (84.49, 17.32, 0.97, 4),
    5: (91.12, 8.96, 0.78, 3),
    10: (95.29, 4.77, 0.17, 3),
    20: (97.64, 2.41, 0.00, 2),
}


@pytest.mark.parametrize("scale", IDEAL)
def test_an_ideal_hash_has_the_efficiency_and_collisions_of_the_formulas(scale: int) -> None:
    ideal = Ideal(1825, 1825 * scale)

    percent = [100 * share for share in (ideal.efficiency, ideal.collisions, ideal.severe)]

    assert tuple(round(share, 2) for share in percent) == IDEAL[scale]


@pytest.mark.parametrize("scale", OF_SPARK)
def test_sparks_hash_has_its_own_collisions(scale: int) -> None:
    outcome = salted(keys_of_days(EVEN), 5, scale)

    shares = (outcome.efficiency, outcome.collisions, outcome.severe)
    assert (*(round(100 * share, 2) for share in shares), outcome.most_keys) == OF_SPARK[scale]
    assert outcome.exact
    assert outcome.tasks == 1825 * scale


def test_schemes_side_by_side_for_even_days() -> None:
    keys = keys_of_days(EVEN)

    dealt_out, columns = dealt(keys, 1825), by_columns(keys, 1825)
    once, thrice = salted(keys, 5, 1), salted(keys, 5, 3)
    by_hash = ranged_by_hash(keys, 1825)
    exact = exactly(keys, pack(keys, files_per_key(keys)))

    assert (dealt_out.files, round(dealt_out.efficiency, 3)) == (666_125, 0.003)
    assert (columns.files, round(columns.efficiency, 2), columns.largest_task) == (365, 0.90, 15)
    assert (once.files, round(once.efficiency, 2)) == (1825, 0.63)
    assert once.largest_task == pytest.approx(7.1, rel=0.05)
    assert (thrice.files, round(thrice.efficiency, 2)) == (1825, 0.84)
    assert thrice.largest_task == pytest.approx(4.0, rel=0.06)
    assert by_hash.files == pytest.approx(2188, abs=2)
    assert round(by_hash.efficiency, 2) == 0.83
    assert round(by_hash.largest_task, 1) == 1.2
    assert round(by_hash.small_files / by_hash.files, 2) == 0.17
    assert (exact.files, exact.efficiency, exact.small_files) == (1825, 1.0, 0)
    assert exact.largest_task == pytest.approx(1.09, abs=0.02)


def test_schemes_side_by_side_for_days_of_a_zipf_distribution() -> None:
    keys = keys_of_days(ZIPF)
    tasks = round(keys.total)

    columns, once = by_columns(keys, tasks), salted(keys, 9, 1)
    by_hash = ranged_by_hash(keys, tasks)
    exact = exactly(keys, pack(keys, files_per_key(keys)))

    assert dealt(keys, tasks).files == 1_109_404
    assert (columns.files, columns.small_files, columns.largest_task) == (365, 0, 400)
    assert once.files == pytest.approx(3283, abs=3)
    assert round(once.small_files / once.files, 2) == 0.60
    assert once.largest_file == pytest.approx(45, abs=0.5)
    assert by_hash.files == 3809
    assert round(by_hash.small_files / by_hash.files, 2) == 0.10
    assert exact.small_files == 0
    assert exact.largest_task <= 1.25
    optimum = np.maximum(1, np.round(ZIPF / 1000)).sum()
    assert exact.files == pytest.approx(optimum, rel=0.02)


def test_small_keys_are_spread_over_tasks_that_run_in_parallel() -> None:
    keys = keys_of_days([10] * 99)
    files = files_per_key(keys)

    # A task holds at least a 64th of the target.
    assert exactly(keys, pack(keys, files)).tasks == 2
    spread = exactly(keys, pack(keys, files, parallelism=2))
    assert (spread.files, spread.tasks, spread.largest_task) == (99, 8, pytest.approx(0.13))
    assert exactly(keys, pack(keys, files, parallelism=200)).tasks == 99


@pytest.mark.parametrize("efficiency", [0.3, 0.8, 0.9, 0.95, 0.99])
def test_the_scale_is_the_least_that_an_ideal_hash_needs(efficiency: float) -> None:
    keys = WriteKeys.equal(365, 1825, None)

    scale = scale_for(keys, 5, efficiency)

    assert Ideal(1825, 1825 * scale).efficiency >= efficiency
    assert scale == 1 or Ideal(1825, 1825 * (scale - 1)).efficiency < efficiency


def test_fewer_rows_than_tasks_make_no_more_files_than_rows() -> None:
    keys = keys_of_days([3, 0, 1], target_rows=1)

    assert dealt(keys, 4).files == 5
    assert by_columns(keys, 4).files == 2
    assert exactly(keys, pack(keys, files_per_key(keys))).files <= 4


@pytest.mark.parametrize(
    ("scheme", "divided", "source_tasks", "said"),
    [
        ("columns", False, None, "no partition columns"),
        ("coalesce", False, None, "source_tasks"),
        ("coalesce", False, 3, "coalesce cannot add any"),
        ("coalesce", False, 500, "instead of 500"),
        ("repartition", True, None, "files where"),
        ("salted", True, None, "needlessly small"),
    ],
)
def test_an_unsuitable_scheme_says_why_in_plain_words(
    scheme: str, divided: bool, source_tasks: int | None, said: str
) -> None:
    keys = keys_of_days([400_000, 1_000, 1_000, 2_000]) if divided else keys_of_days([5_000])
    write = Write(
        keys=keys,
        tasks=round(keys.total),
        divided=divided,
        files_per_key=None,
        source_tasks=source_tasks,
        efficiency=0.9,
    )

    judged = judge(scheme, write)

    assert not judged.serves
    assert said in judged.reason
