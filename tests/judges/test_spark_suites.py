"""Spark's own tests pass when Windrow plans the scans and writes of their queries."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.judges import hive_suites, spark_suites, sql_suites
from tests.judges.spark_suites import Suite
from tests.support.night import of_round

pytestmark = [pytest.mark.spark, pytest.mark.nightly]

# All of them take two and a half hours, and a slice of the night a few minutes.
SUITES = of_round(sql_suites.SUITES + hive_suites.SUITES, 2)


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.label)
def test_no_test_of_a_suite_fails_for_a_reason_that_is_windrows(
    suite: Suite, tmp_path: Path
) -> None:
    tests = spark_suites.run(suite, tmp_path / "suite")

    failures = {test.test: test.error[:2000] for test in tests if test.is_failure}
    assert failures.keys() - suite.excluded.keys() == set(), failures
    assert suite.excluded.keys() - {test.test for test in tests} == set()
    # A suite whose scans are all left to Spark proves nothing.
    assert sum(bool(test.planned) for test in tests) > 0
