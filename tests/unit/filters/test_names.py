"""Names of columns are looked up, and similar ones suggested, among any number of columns."""

from __future__ import annotations

from windrow_service.filters.names import TableColumns


def test_similar_names_are_suggested_among_thousands() -> None:
    columns = TableColumns(f"measurement_{number}" for number in range(10_000))

    assert columns.find("MEASUREMENT_77") == "measurement_77"
    assert "did you mean measurement_77" in columns.why_none("measuremet_77")


def test_long_names_are_compared_with_none() -> None:
    # Comparing two of them takes minutes.
    columns = TableColumns([f"{number:05}" + "ab" * 500 for number in range(10_000)])

    assert "the table has 00000ab" in columns.why_none("00000" + "ba" * 500)
