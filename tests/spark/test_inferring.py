"""Columns that are inferred without Spark are those that Spark infers."""

from __future__ import annotations

import gzip
import json
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from tests.support.laws import examples
from windrow.inferring import infer_columns
from windrow_calls.errors import InvalidArgumentError
from windrow_spark.inferring import infer_columns as infer_by_spark

pytestmark = pytest.mark.usefixtures("interpreted")

numbers = count()

# Of each column, values of one pool, and at times of another.
POOLS: list[list[str]] = [
    ["0", "1", "-7", "+3", "007", "2147483647", "-2147483648"],
    ["2147483648", "-9223372036854775808", "9223372036854775807", "1"],
    ["1.5", "-0.25", ".5", "+1.0", "3"],
    ["true", "FALSE", "True"],
    ["2026-11-01", "1970-01-01", "2024-02-29"],
    ["2026-11-01 10:00:00", "2026-11-01T23:59:59.123456", "2026-11-01 10:00:00Z"],
    ["x", "Anna", "b c", "#", "/etc", "truely", "E5", "Times", "_", "f", "null", "(1)"],
    ["10.0.0.1", "192.168.1.1", "01/02/2026", "555-1234", "12 Main Street", "3 apples"],
    # What Java may read as a number, a date or a time.
    ["1e3", "5.", "1d", "0x1p3", " 1", "1 ", "NaN", "Infinity", "-inf", "9" * 19, "1" * 39, "1_0"],
    [
        "2026",
        "2026-1-1",
        "2026-11",
        "T10:00",
        "10:00",
        "2026-02-30",
        "2026-11-01 25:00:00",
        "epoch",
    ],
    ["\u0661", "ä", "\u00a0", "\u2212" + "1", "1,5"],
    [""],
]


def quoted(value: str, separator: str) -> str:
    return f'"{value}"' if separator in value else value


@st.composite
def csv_files(draw: Any) -> tuple[list[str], dict[str, str]]:
    """Return the texts of files, and options."""
    separator = draw(st.sampled_from([",", ";", "\t", "|"]))
    columns = draw(st.lists(st.sampled_from(POOLS), min_size=1, max_size=4))
    value = [
        st.one_of(st.sampled_from(pool), st.sampled_from(draw(st.sampled_from([pool, *POOLS]))))
        for pool in columns
    ]
    has_header = draw(st.booleans())
    texts = []
    for _ in range(draw(st.integers(1, 2))):
        rows = draw(st.lists(st.tuples(*value), min_size=1, max_size=4))
        lines = [[f"Name {number}" for number in range(len(columns))]] if has_header else []
        lines += [[quoted(one, separator) for one in row] for row in rows]
        end = draw(st.sampled_from(["\n", "\r\n"]))
        texts.append("".join(separator.join(line) + end for line in lines))
    options = {"sep": separator} if separator != "," else {}
    return texts, options | ({"header": "true"} if has_header else {})


SCALARS = st.sampled_from(
    [
        None,
        True,
        0,
        -7,
        2**40,
        2**63 - 1,
        2**63,
        10**30,
        1.5,
        1e300,
        -0.0,
        "x",
        "",
        "2026-11-01",
        "1",
    ]
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["b", "a", "A1", "z z"]), inner, max_size=3),
    ),
    max_leaves=6,
)
DOCUMENTS = st.lists(
    st.dictionaries(st.sampled_from(["n", "m", "Z", "a"]), VALUES, max_size=4),
    min_size=1,
    max_size=5,
)


def compared(
    spark: SparkSession, folder: Path, texts: list[str], format: str, options: dict[str, str]
) -> bool:
    """Compare the columns of files; return False if only Spark can tell."""
    location = folder / f"t{next(numbers)}"
    (location / "ds=1").mkdir(parents=True)
    for number, text in enumerate(texts):
        file = location / "ds=1" / f"{number}.{format}"
        if number % 2:
            file.with_suffix(f".{format}.gz").write_bytes(gzip.compress(text.encode()))
        else:
            file.write_bytes(text.encode())
    try:
        columns = infer_columns(str(location), format, options)
    except InvalidArgumentError as error:
        if "only Spark can tell" not in str(error):
            raise
        return False
    by_spark = infer_by_spark(spark, str(location), format, options)
    assert list(columns.items()) == list(by_spark.items()), texts
    return True


@examples(40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(drawn=csv_files())
def test_csv_columns_are_those_of_spark_or_refused(
    spark: SparkSession, tmp_path: Path, drawn: tuple[list[str], dict[str, str]]
) -> None:
    texts, options = drawn
    compared(spark, tmp_path, texts, "csv", options)


@examples(40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(documents=[{"n": [True, ""]}])
@given(documents=DOCUMENTS)
def test_json_columns_are_those_of_spark_or_refused(
    spark: SparkSession, tmp_path: Path, documents: list[dict[str, Any]]
) -> None:
    compared(spark, tmp_path, ["".join(json.dumps(one) + "\n" for one in documents)], "json", {})


def test_usual_files_are_not_refused(spark: SparkSession, tmp_path: Path) -> None:
    # One column of each pool whose values Java reads in one way alone.
    rows = [
        ",".join(quoted(pool[number % len(pool)], ",") for pool in POOLS[:8])
        for number in range(12)
    ]
    document = {"id": 1, "price": 1.5, "tags": ["a"], "who": {"name": "x", "age": None}, "ok": True}

    assert compared(spark, tmp_path, ["\n".join(rows)], "csv", {})
    assert compared(spark, tmp_path, [json.dumps(document)], "json", {})
