"""Texts that retention takes for dates are those that Spark casts to them."""

from __future__ import annotations

from pyspark.sql import SparkSession

from windrow_service.planner.maintenance.retention import last_day

WHOLE = [
    *(
        "2026-08-01",
        "2026-8-1",
        " 2026-08-01 ",
        "2026-08-01T10:00",
        "2026-8-1 7:05:00.5Z",
        "2024-02-29",
    ),
    *(
        "2026-02-30",
        "2026-13-01",
        "20260801",
        "latest",
        "",
        "2026/08/01",
        "2026-08-01x",
        "26-08-01",
    ),
    *("2026-08-", "today", "2026-08-001", "2026-0-1", "\t2026-08-01\n"),
]
PARTS = ["2026", "2026-08", "2026-8"]
# Spark takes whatever follows a day; a partition that is dropped should be sure to be one.
DOUBTFUL = ["2026-8-1 anything", "1234-5-6 bolt M4", "2026-08-01T10h"]


def test_texts_are_the_dates_that_spark_casts_them_to(spark: SparkSession) -> None:
    rows = spark.createDataFrame([(text,) for text in [*WHOLE, *PARTS, *DOUBTFUL]], "text string")
    dates = dict(map(tuple, rows.selectExpr("text", "try_cast(text AS date)").collect()))

    assert {text: last_day(text) for text in WHOLE} == {text: dates[text] for text in WHOLE}
    for text in DOUBTFUL:
        assert (dates[text] is None, last_day(text)) == (False, None)
    for text in PARTS:
        day = last_day(text)
        assert day is not None
        # A year and a month are dates of Spark, too: their first day.
        assert dates[text] <= day
