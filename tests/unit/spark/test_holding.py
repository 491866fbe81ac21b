"""When the waiting batches of a stream make files."""

from __future__ import annotations

from typing import Any

import pytest

from windrow_calls.errors import InvalidArgumentError
from windrow_spark.streaming.holding import Holding
from windrow_spark.streaming.options import sink_options

MB = 2**20
FIGURES: dict[str, Any] = {
    "age_s": 10.0,
    "write_s": 0.0,
    "size_bytes": 30 * MB,
    "partitions": 3,
    "recent_files": 20,
}


@pytest.mark.parametrize(
    ("holding", "figures", "is_due"),
    [
        (Holding(), {"age_s": 0.0}, True),
        (Holding(60, 16 * MB), {}, False),
        (Holding(60, 16 * MB), {"age_s": 60.0}, True),
        (Holding(60, 16 * MB), {"age_s": 50.0, "write_s": 10.0}, True),
        (Holding(60, 16 * MB), {"age_s": 29.0, "write_s": 99.0}, False),
        (Holding(60, 16 * MB), {"age_s": 30.0, "write_s": 99.0}, True),
        (Holding(60, 10 * MB), {}, True),
        (Holding(60, 10 * MB), {"partitions": 4}, False),
        (Holding(60, 0, 23), {}, True),
        (Holding(60, 0, 22), {}, False),
        (Holding(60, 0, 22), {"age_s": 60.0}, True),
        (Holding(60, 16 * MB, 100), {}, False),
    ],
)
def test_batches_wait_for_size_and_number_of_files_up_to_the_delay(
    holding: Holding, figures: dict[str, Any], is_due: bool
) -> None:
    assert holding.is_due(**(FIGURES | figures)) == is_due


@pytest.mark.parametrize(
    ("texts", "holding"),
    [
        ({}, Holding(0, 128 * MB)),
        ({"max_delay": "10min"}, Holding(600, 128 * MB)),
        ({"max_delay": "90"}, Holding(90, 128 * MB)),
        ({"max_delay": "1.5 hours", "target_file_size": "64MB"}, Holding(5400, 64 * MB)),
        ({"max_delay": "2h", "min_file_size": "1MB"}, Holding(7200, MB)),
        ({"max_delay": "30s", "max_files_per_hour": "7"}, Holding(30, 0, 7)),
    ],
)
def test_options_say_how_long_batches_wait(texts: dict[str, str], holding: Holding) -> None:
    assert sink_options(texts)[1] == holding


@pytest.mark.parametrize("text", ["10 fortnights", "-1s", "8d", "s", "min"])
def test_a_delay_that_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgumentError, match="max_delay"):
        sink_options({"max_delay": text})
