"""Errors for wrong arguments name them, the allowed values, and a suggestion."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

import windrow
from windrow_calls.errors import InvalidArgumentError, WindrowError

Call = Callable[[windrow.Client], Any]

WRONG: dict[str, tuple[Call, str, str]] = {
    "limit": (lambda c: c.plan("t", limit=0), "limit", "limit=0: it must be"),
    "format": (
        lambda c: c.register_table("t", "/data", format="parqet"),
        "format",
        "did you mean 'parquet'?",
    ),
    "columns": (
        lambda c: c.register_table("t", "/data", partition_columns=["ds"]),
        "partition_columns",
        "write partition_columns={'ds': '…'}",
    ),
    "strategy": (
        lambda c: c.plan("t", strategy="balansed"),
        "strategy",
        "did you mean 'balanced'?",
    ),
    "unknown option": (
        lambda c: c.plan("t", parallelis=3),
        "parallelis",
        "no parameter 'parallelis': did you mean 'parallelism'?",
    ),
    "misspelt parameter": (
        lambda c: c.plan("t", colums=["x"]),
        "colums",
        "did you mean 'columns'?",
    ),
    "size": (lambda c: c.plan("t", max_split_size="large"), "max_split_size", "'large'"),
    "compaction": (
        lambda c: next(iter(c.plan_compaction("t", min_file=2))),
        "min_file",
        "did you mean 'min_files'?",
    ),
    "expiry": (
        lambda c: c.expire_snapshots("t", keep_last=0, max_age=timedelta(1)),
        "keep_last",
        "keep_last=0",
    ),
    "typed columns": (
        lambda c: c.register_table("t", "/data", partition_columns=["ds:date", "n:int"]),
        "partition_columns",
        "write partition_columns={'ds': 'date', 'n': 'int'}",
    ),
    "swapped table and location": (
        lambda c: c.register_table("/data/events", "sales.events"),
        "table",
        "'/data/events' is not the name of a table: are name and location swapped?",
    ),
    "table": (lambda c: c.table("sales events"), "table", "letters, digits, '_' and '-'"),
    "table of a plan": (lambda c: c.plan("sales events"), "table", "such as sales.events"),
    "no text": (lambda c: c.table(None), "table", "is a text, not a NoneType"),
    "filter for a rule": (
        lambda c: c.drop_cache("t", "ds >= '2026-11-01'"),
        "rule",
        "is not the name of a rule: the rule of that filter is 'rule-",
    ),
    "plan": (lambda c: c.explain("of yesterday"), "plan_id", "at least eight"),
    "rows after the table": (
        lambda c: c.write("sales.events", "rows"),
        "df",
        "'sales.events' is not a DataFrame of Spark, which comes first, as in client.write(df, ",
    ),
    "session after the table": (
        lambda c: c.read("sales.events", "spark"),
        "spark",
        "'sales.events' is not a session, which comes first, as in client.read(spark, ",
    ),
    "mode": (
        lambda c: c.write(SimpleNamespace(sparkSession=None), "t", mode="appendd"),
        "mode",
        "did you mean 'append'?",
    ),
    "number": (lambda c: c.plan("t", parallelism="many"), "parallelism", "it must be a whole"),
    "filter": (lambda c: c.plan("t", filter=3), "filter", "it must be SQL such as"),
    "time": (
        lambda c: c.cache_table("t", "x = 1", expires_at="2026-11-01T00:00:00"),
        "expires_at",
        "it must be a time with a zone",
    ),
    "cache rule": (
        lambda c: c.cache_table("t", "x = 1", max_bytes=-1),
        "max_bytes",
        "max_bytes=-1",
    ),
}


@pytest.mark.parametrize(("call", "argument", "said"), WRONG.values(), ids=WRONG)
def test_a_wrong_argument_is_named_with_the_allowed_values(
    call: Call, argument: str, said: str
) -> None:
    with (
        windrow.connect("http://127.0.0.1:1", check=False) as client,
        pytest.raises(InvalidArgumentError) as caught,
    ):
        call(client)

    assert isinstance(caught.value, WindrowError)
    assert caught.value.argument == argument
    assert said in str(caught.value)
    assert not re.search(r"pydantic|Input should|String should|\^\[", str(caught.value))
