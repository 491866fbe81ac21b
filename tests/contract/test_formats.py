"""Tables of each format are registered, refreshed, published and planned."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest

import windrow
from tests.support.api.problems import problem_of
from tests.support.plans.conformance import Case
from windrow_calls.errors import InvalidArgumentError, ProblemError, RefreshFailedError

MakePlan = Callable[..., dict[str, Any]]
MULTI_LINE = {"multiLine": True}


def register(
    client: windrow.Client, name: str, location: Path, format_: str, **options: Any
) -> None:
    location.mkdir()
    client.register_table(
        name, str(location), format_, columns={"id": "string"}, format_options=options
    )


@pytest.mark.parametrize(
    ("format_", "options", "offsets", "expected"),
    [
        ("orc", {}, [3, 90, 180], [70, 90, 90]),
        ("orc", {}, [], [250]),
        ("avro", {}, [], [250]),
        ("csv", {}, [], [75, 75, 100]),
        ("csv", MULTI_LINE, [], [250]),
        ("csv", {"multiLine": "False"}, [], [75, 75, 100]),
        ("json", {}, [0, 90, 180], [70, 90, 90]),
        ("json", MULTI_LINE, [], [250]),
        ("text", {}, [], [75, 75, 100]),
        ("text", {"wholetext": True}, [], [250]),
        ("text", {"lineSep": ";"}, [], [250]),
    ],
)
def test_files_of_any_format_are_cut_only_where_a_record_may_begin(
    client: windrow.Client,
    name: str,
    location: Path,
    make_plan: MakePlan,
    format_: str,
    options: dict[str, Any],
    offsets: list[int],
    expected: list[int],
) -> None:
    register(client, name, location, format_, **options)
    client.publish(name, Case(name="", strategy="", sizes=[250], offsets=[offsets]).published())

    plan = make_plan(name, options={"max_split_size": 100})

    splits = [split for group in plan["groups"] for split in group["splits"]]
    assert plan["format"] == format_
    assert sorted(split["length"] for split in splits) == expected
    # Files without footers, or whose footers were not read here, go to Spark's own reader alone.
    assert {split["grouped"] for split in splits} == {False}
    assert {split["native"] for split in splits} == {True}


@pytest.mark.parametrize("format_", ["csv", "json", "text"])
def test_a_refresh_of_text_lists_files_without_counting_their_rows(
    client: windrow.Client, name: str, location: Path, make_plan: MakePlan, format_: str
) -> None:
    register(client, name, location, format_)
    for day, content in (("1", b"a\nb\n"), ("2", b"not looked at \xff"), ("3", b"")):
        (location / f"ds={day}").mkdir()
        (location / f"ds={day}" / "part.gz").write_bytes(content)

    done = client.refresh(name)

    assert done.snapshot is not None
    assert (done.snapshot.file_count, done.snapshot.row_count) == (2, None)
    assert [(one.name, one.type) for one in done.snapshot.columns] == [("id", "string")]
    assert done.progress.footers_read == 0
    assert not client.refresh(name).changed
    plan = make_plan(name, filter="ds = 2", limit=1)
    assert plan["summary"]["row_count"] is None
    assert plan["summary"]["files_pruned_by_partition"] == 1
    assert [s["row_count"] for g in plan["groups"] for s in g["splits"]] == [None]


def test_rows_are_counted_again_once_no_file_of_unknown_rows_is_left(
    client: windrow.Client, name: str, location: Path, make_plan: MakePlan
) -> None:
    register(client, name, location, "csv")
    client.publish(name, files(one=3, two=None))
    assert make_plan(name)["summary"]["row_count"] is None

    known = client.publish(name, files(one=3, two=4))

    assert known.row_count == 7
    assert make_plan(name)["summary"]["row_count"] == 7
    assert make_plan(name, limit=3)["summary"]["files_pruned_by_limit"] == 1


def test_published_parquet_files_must_have_row_counts(
    client: windrow.Client, name: str, location: Path
) -> None:
    register(client, name, location, "parquet")

    with pytest.raises(ProblemError, match="column 'row_count', row 1: None is null"):
        client.publish(name, files(one=3, two=None))


def test_text_has_one_column_of_strings(
    client: windrow.Client, http: httpx.Client, name: str, location: Path
) -> None:
    location.mkdir()
    (location / "part.txt").write_text("a\n")
    client.register_table(name, str(location), "text")
    found = client.refresh(name).snapshot
    assert found is not None
    assert [(one.name, one.type) for one in found.columns] == [("value", "string")]

    two = {"a": "int", "b": "string"}
    client.register_table(name, str(location), "text", columns=two, replace=True)

    with pytest.raises(RefreshFailedError, match="of type string, and 'a', 'b' are declared"):
        client.refresh(name)


@pytest.mark.parametrize("format_", ["csv", "json"])
def test_a_refresh_of_text_without_columns_says_how_to_find_them(
    client: windrow.Client, http: httpx.Client, name: str, location: Path, format_: str
) -> None:
    location.mkdir()
    client.register_table(name, str(location), format_)

    problem = problem_of(http.post(f"/tables/{name}/refresh"), 409, "columns-not-declared")

    assert "`client.infer_columns` finds" in problem["detail"]


def test_an_unknown_format_is_refused_and_known_ones_are_listed(
    http: httpx.Client, name: str, location: Path
) -> None:
    answer = http.put(f"/tables/{name}", json={"location": str(location), "format": "xml"})

    problem = problem_of(answer, 422, "invalid-request")
    assert (
        "'parquet', 'orc', 'avro', 'csv', 'json', 'text', 'delta' or 'iceberg'" in problem["detail"]
    )


def test_options_of_a_format_are_kept_in_sparks_spelling_and_travel_with_plans(
    client: windrow.Client, name: str, location: Path, make_plan: MakePlan
) -> None:
    register(client, name, location, "csv", HEADER=True, sep=";", nullvalue="", maxcolumns=7)
    expected = {"header": "true", "sep": ";", "nullValue": "", "maxColumns": "7"}

    assert client.table(name).definition.format_options == expected
    client.publish(name, files(one=1))
    assert make_plan(name)["format_options"] == expected


@pytest.mark.parametrize(
    ("format_", "option", "value", "said"),
    [
        ("csv", "headers", "true", "did you mean 'header'"),
        ("text", "quote", ";", "not an option of format text: its options are encoding, lineSep"),
        ("text", "header", "true", "is not an option of format text"),
        ("parquet", "sep", ";", "tables of format parquet take no options"),
        ("csv", "inferSchema", "true", "`client.infer_columns` finds them: leave it out"),
        ("json", "samplingRatio", "0.1", "`client.infer_columns` finds them: leave it out"),
        ("parquet", "mergeSchema", "true", "`client.infer_columns` finds them: leave it out"),
        ("csv", "ignoreCorruptFiles", "true", "every planned file is read"),
        ("csv", "pathGlobFilter", "*.csv", "a refresh decides which files a table has"),
        ("csv", "path", "/etc", "a refresh decides which files a table has"),
        ("csv", "compression", "gzip", "the suffix of each file"),
        ("csv", "quoteAll", "true", "it only affects writing"),
        ("avro", "avroSchemaUrl", "/etc/passwd", "each file has a schema of its own"),
        ("csv", "header", "yes", "it must be true or false"),
        ("csv", "mode", "STRICT", "it must be PERMISSIVE or DROPMALFORMED or FAILFAST"),
        ("csv", "quote", "''", "it must be one character"),
        ("csv", "maxColumns", "many", "it must be a whole number"),
        ("csv", "sep", "", "it must not be empty"),
        ("csv", "sep", ";" * 70_000, "is longer than 65,536 characters"),
    ],
)
def test_options_that_cannot_apply_to_reading_are_refused_by_name(
    client: windrow.Client,
    name: str,
    location: Path,
    format_: str,
    option: str,
    value: str,
    said: str,
) -> None:
    with pytest.raises(InvalidArgumentError) as refused:
        client.register_table(name, str(location), format_, format_options={option: value})

    assert said in str(refused.value)
    assert option in str(refused.value)


def test_the_same_option_under_two_names_is_refused(
    client: windrow.Client, name: str, location: Path
) -> None:
    for options in ({"sep": ";", "delimiter": ","}, {"header": True, "Header": False}):
        with pytest.raises(InvalidArgumentError, match=r"mean the same|appears twice"):
            client.register_table(name, str(location), "csv", format_options=options)


def test_bloom_filters_of_a_format_without_them_are_refused(
    client: windrow.Client, name: str, location: Path
) -> None:
    with pytest.raises(ProblemError, match="Bloom filters are not built for csv"):
        client.register_table(
            name, str(location), "csv", columns={"id": "int"}, bloom_columns=["id"]
        )


def files(**rows: int | None) -> pa.Table:
    return pa.table(
        {
            "path": pa.array(rows),
            "size_bytes": pa.array([10] * len(rows)),
            "mtime_ns": pa.array([1] * len(rows)),
            "row_count": pa.array(rows.values(), pa.int64()),
        }
    )
