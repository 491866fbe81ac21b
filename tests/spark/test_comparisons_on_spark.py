"""Every comparison of numbers gives the result that Spark gives for the same SQL, or is refused."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Context, Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tests.support.laws import examples
from windrow_service.filters.bind import bind
from windrow_service.filters.errors import InvalidFilterError
from windrow_service.filters.sql import parse_sql
from windrow_service.filters.tree import to_tree
from windrow_service.planner.pruning.bounds import Bounds, SortKeys
from windrow_service.planner.pruning.outcomes import truth_values
from windrow_tables.executor.filters import matching

pytestmark = pytest.mark.spark

WIDE = Context(prec=100)
INTEGERS = {"tiny": pa.int8(), "small": pa.int16(), "i": pa.int32(), "l": pa.int64()}
NUMBERS = [0, 1, -1, 7, 2**24 + 1, 2**31 - 1, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63)]
FLOATS = [0.0, -0.0, 0.1, 0.5, 1.5, -7.25, 2.0**24, 2.0**53, 9.1e18, 1e38, float("inf")]


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    """Draw a table of integers, floats, and decimals with various precisions and scales."""
    columns: dict[str, pa.Array] = {}
    for name, type_ in INTEGERS.items():
        limit = 2 ** (type_.bit_width - 1)
        fitting = [n for n in [*NUMBERS, limit - 1, -limit] if -limit <= n < limit]
        columns[name] = pa.array(
            draw(st.lists(st.sampled_from(fitting) | st.none(), min_size=8, max_size=8)), type_
        )
    floats = st.lists(st.sampled_from([*FLOATS, float("nan")]) | st.none(), min_size=8, max_size=8)
    columns["f"] = pa.array(draw(floats), pa.float32())
    columns["x"] = pa.array(draw(floats), pa.float64())
    for at in range(6):
        precision = draw(st.sampled_from([38, 37, 20, 19, 18]) | st.integers(1, 38))
        scale = draw(st.integers(0, precision))
        limit = 10**precision - 1
        unscaled = st.integers(-limit, limit) | st.sampled_from([limit, -limit, 0, limit // 2 + 1])
        values = draw(st.lists(unscaled | st.none(), min_size=8, max_size=8))
        columns[f"d{at}"] = pa.array(
            [None if v is None else Decimal(v).scaleb(-scale, WIDE) for v in values],
            pa.decimal128(precision, scale),
        )
    return pa.table(columns)


@st.composite
def literals(draw: st.DrawFn, values: list[Any]) -> str:
    """Draw a literal, in any notation, that equals or almost equals a value of the column."""
    value = draw(st.sampled_from([v for v in values if v is not None and v == v] or [0]))
    if value in (float("inf"), float("-inf")):
        value = 0
    exact = Decimal(str(value) if isinstance(value, float) else value)
    step = Decimal(1).scaleb(exact.as_tuple().exponent - draw(st.integers(0, 20)), WIDE)
    nudged = WIDE.add(exact, WIDE.multiply(step, draw(st.sampled_from([0, 0, 0, 1, -1, 5]))))
    notation = draw(st.sampled_from(["plain", "plain", "padded", "whole", "double", "quoted"]))
    if notation == "double":
        return format(nudged, "e") if "e" in format(nudged, "e") else f"{nudged:f}e0"
    if notation == "whole":
        return str(int(nudged))
    if notation == "padded":
        text = format(nudged, "f")
        return text + ("000" if "." in text else ".0")
    return f"'{nudged:f}'" if notation == "quoted" else format(nudged, "f")


@st.composite
def conditions(draw: st.DrawFn, table: pa.Table) -> str:
    name = draw(st.sampled_from(table.column_names))
    literal = literals(table[name].to_pylist())
    kind = draw(st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "in", "between"]))
    if kind == "in":
        written = draw(st.lists(literal | st.just("NULL"), min_size=1, max_size=12))
        text = f"{name} IN ({', '.join(written)})"
    elif kind == "between":
        text = f"{name} BETWEEN {draw(literal)} AND {draw(literal)}"
    else:
        text = f"{name} {kind} {draw(literal)}"
    return f"NOT ({text})" if draw(st.booleans()) else text


@st.composite
def tables_and_conditions(draw: st.DrawFn) -> tuple[pa.Table, list[str]]:
    table = draw(tables())
    return table, draw(st.lists(conditions(table), min_size=120, max_size=120, unique=True))


class RowsAsFiles:
    """The rows of a table as files of one row each, with their values as statistics."""

    def __init__(self, rows: pa.Table) -> None:
        self._rows = rows
        self.file_count = rows.num_rows

    def bounds(self, column: str) -> Bounds:
        keys = SortKeys.of(self._rows[column])
        null = self._rows[column].is_null().to_numpy()
        return Bounds(keys, keys, keys.known, ~keys.known & ~null, null, exact=False)


def is_beyond_spark(condition: str) -> bool:
    """Return whether a literal has more than the 38 digits that Spark accepts."""
    numbers = parse_sql(condition).positions[0].values
    return any(
        max(0, Decimal(str(number.value)).adjusted() + 1) + number.scale > 38
        for number in numbers
        if number.kind == "number"
    )


@examples(4, phases=(Phase.generate,), suppress_health_check=list(HealthCheck))
@given(drawn=tables_and_conditions())
def test_a_comparison_has_the_result_of_spark(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, drawn: tuple[Any, Any]
) -> None:
    table, texts = drawn
    bound = {}
    for text in texts:
        if is_beyond_spark(text):
            continue
        try:
            bound[text] = bind(
                parse_sql(text), dict(zip(table.column_names, table.schema.types, strict=True))
            )
        except InvalidFilterError:
            continue
    assert len(bound) > len(texts) / 3
    path = tmp_path_factory.mktemp("numbers")
    pq.write_table(table, path / "rows.parquet")

    judged = answers_of_spark(spark, path, list(bound))

    facts = RowsAsFiles(table)
    for text, expression in bound.items():
        answers = matching(to_tree(expression), table).to_pylist()
        assert answers == judged[text], text
        flags = truth_values(expression, facts)
        for answer, true, false in zip(answers, flags.true, flags.false, strict=True):
            assert true or answer is not True, text
            assert false or answer is not False, text


def answers_of_spark(
    spark: SparkSession, path: Path, texts: list[str]
) -> Mapping[str, list[bool | None]]:
    rows = (
        spark.read.parquet(str(path))
        .select(F.array(*[F.expr(text) for text in texts]).alias("answers"))
        .collect()
    )
    return {text: [row.answers[at] for row in rows] for at, text in enumerate(texts)}
