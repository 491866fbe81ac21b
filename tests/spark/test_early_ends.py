"""Queries that stop reading early, as for `LIMIT`, print no errors; damaged files still do fail."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.nightly]


def test_queries_that_stop_reading_early_print_no_tracebacks(
    early_ends: list[dict[str, Any]],
) -> None:
    for report in early_ends:
        rows = [3, 1, 5, 1, 7, 20, 5_000]

        assert report["counts"] == {"packed": rows, "nested": rows}
        assert "Traceback" not in report["stderr"], report["version"]
        assert "BrokenPipeError" not in report["stderr"], report["version"]


def test_a_damaged_file_fails_a_query_that_stops_early_by_its_name(
    early_ends: list[dict[str, Any]],
) -> None:
    for report in early_ends:
        assert "/table/packed/" in report["failure"], report["version"]
        assert ".parquet" in report["failure"], report["version"]
