"""The reader's errors name the thing and the remedy in one line."""

from __future__ import annotations

import pytest

from windrow_spark import errors as driver
from windrow_tables import errors as tables
from windrow_tables.executor import errors as executor

ERRORS = [
    executor.StaleFileError("/t/a", "row count", 3, 4),
    executor.VanishedFileError("/t/a"),
    executor.UnreadableFileError("/t/a", "no footer"),
    executor.InaccessibleFileError("/t/a", "Permission denied: give the user the right"),
    executor.ScratchError("/tmp", "No space left on device: make room"),
    executor.StoreError("s3://t/a", "may not be read: the credentials here have expired"),
    executor.AcidFileError("/t/a", "it does not name rows"),
    executor.DeletesError("/t/a", "its deletion vector is not usable"),
    executor.AmbiguousColumnError("/t/a", "id", ("ID", "Id")),
    executor.ColumnTypeError("/t/a", "id", "string", "int64"),
    executor.OldTimeError("/t/a", "t", "holds old times; rewrite the file"),
    executor.UnsortedFileError("/t/a", ("id", "ts")),
    executor.ResidualFilterError("operator 'like' is not known"),
    driver.SparkConnectError(),
    driver.DataSourceUnavailableError("3.5.9"),
    driver.ServerCannotReachError(),
    tables.UnfitReadError("table 't' has no buckets", "register it with its bucket_spec"),
    driver.RelationUnavailableError("3.5.9", "no such class"),
    driver.FormatUnavailableError("3.5.9", "avro", "no such class"),
    tables.OnlySparkReadsError("sales.events", "csv", "which applies no `filter`", "use .where"),
    driver.BucketsDifferError("sales.events", "8 buckets of id", "users", "4 of id", "id"),
    driver.BucketsUnavailableError("sales.events", "no such class"),
    driver.CaseSensitiveNamesError(),
    driver.EqualTimesError("sales.events"),
    driver.SettingError("t", "spark.a", "true", "does this", "false", "rows"),
    tables.UnsupportedDeletesError("sales.events", 3),
    driver.UnsupportedTypeError("v", "variant"),
    driver.PlanningFailedError("NotFoundError", "there is no table 't'"),
    driver.TaskFailedError("StaleFileError", "file '/t/a' has changed"),
]
REMEDIES = (
    "see docs/how-to/object-stores.md",
    "then read again",
    "name another folder",
    "register it",
    "ask for it as well",
    "join the DataFrames",
    "expect a slower",
    "refresh",
    "rewrite",
    "declare",
    "start the session",
    "set it to false",
    "leave it out",
    "use a client",
    "read its",
    "compact",
    "pass `columns`",
    "use a release of Spark",
    "keep the client open",
    "use Spark 4.0",
    "use .where",
    "run one with",
    "name it in",
    "use client.write",
    "foreachBatch",
    "plan with BETWEEN",
)


@pytest.mark.parametrize("error", ERRORS[:-2], ids=lambda error: type(error).__name__)
def test_an_error_is_one_line_that_says_what_to_do(error: Exception) -> None:
    assert "\n" not in str(error)
    assert any(remedy in str(error) for remedy in REMEDIES)


def test_every_error_of_the_reader_is_listed_here() -> None:
    read = tables.ReadError
    for module, base in ((executor, executor.TaskReadError), (tables, read), (driver, read)):
        leaves = {
            value
            for value in vars(module).values()
            if isinstance(value, type) and issubclass(value, base) and value is not base
        }
        assert leaves <= {type(error) for error in ERRORS}
