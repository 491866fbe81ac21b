"""Errors for wrong arguments name them, the allowed values, and a suggestion."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

import windrow
from windrow.errors import InvalidArgumentError, WindrowError

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
        "partition_columns.0",
        "partition_columns.0='ds'",
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
        windrow.connect("http://127.0.0.1:1") as client,
        pytest.raises(InvalidArgumentError) as caught,
    ):
        call(client)

    assert isinstance(caught.value, WindrowError)
    assert caught.value.argument == argument
    assert said in str(caught.value)
    assert "pydantic" not in str(caught.value)
