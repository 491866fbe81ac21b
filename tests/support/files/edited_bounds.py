"""Files whose bounds were edited by hand, and which of them a filter must not lose."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from windrow.client import Client

NAN = float("nan")
# The conditions that each table is asked.
_CONDITIONS = 40
DAY, MOMENT = dt.date.fromisoformat, dt.datetime.fromisoformat

# For each column its type, its values, and how SQL writes them.
Kind = tuple[pa.DataType, Sequence[Any], Callable[[Any], str]]
COLUMNS: Mapping[str, Kind] = {
    "i": (pa.int64(), [-129, -1, 0, 1, 127, 2**40], str),
    "f": (pa.float64(), [-1.5, -0.0, 0.0, 1.5, NAN, math.inf], str),
    "s": (pa.string(), ["", "a", "aa", "b", "é", "漢", "\U0001f600"], lambda text: f"'{text}'"),
    "n": (pa.decimal128(9, 2), [Decimal(n).scaleb(-2) for n in (-128, -1, 1, 127, 200)], str),
    "d": (
        pa.decimal128(38, 2),
        [Decimal(n).scaleb(-2) for n in (-128, -1, 1, 10**20, 10**20 + 1)],
        lambda value: f"{value:f}",
    ),
    "y": (
        pa.date32(),
        [DAY("1901-01-01"), DAY("1969-12-31"), DAY("1970-01-01"), DAY("2026-01-01")],
        lambda value: f"date'{value}'",
    ),
    "t": (
        pa.timestamp("us", "UTC"),
        [
            MOMENT("1969-12-31T23:59:59.999999+00:00"),
            MOMENT("1970-01-01T00:00:00+00:00"),
            MOMENT("2026-01-01T00:00:00.123456+00:00"),
            MOMENT("2026-01-01T00:00:00.123999+00:00"),
        ],
        lambda value: f"timestamp'{value:%Y-%m-%d %H:%M:%S.%f}Z'",
    ),
    "o": (pa.bool_(), [False, True], str),
}


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on one column.

    Attributes:
        sql: As a filter of a plan.
        column: The column.
        holds: Whether the condition is true of a value, which may be null.
    """

    sql: str
    column: str
    holds: Callable[[Any], bool]


def contents(names: Sequence[str]) -> st.SearchStrategy[pa.Table]:
    """Draw the rows of a file: a few values or nulls of each column."""

    def of(count: int) -> st.SearchStrategy[pa.Table]:
        columns = {
            name: st.lists(
                st.sampled_from([None, *COLUMNS[name][1]]), min_size=count, max_size=count
            )
            for name in names
        }
        return st.fixed_dictionaries(columns).map(
            lambda values: pa.table(
                {name: pa.array(values[name], COLUMNS[name][0]) for name in names}
            )
        )

    return st.integers(1, 4).flatmap(of)


def conditions(names: Sequence[str]) -> st.SearchStrategy[list[Condition]]:
    """Draw conditions on columns: comparisons with one of their values, and with null."""
    all_conditions = []
    for name in names:
        _, values, sql = COLUMNS[name]
        all_conditions.append(Condition(f"{name} IS NULL", name, lambda value: value is None))
        all_conditions.append(
            Condition(f"{name} IS NOT NULL", name, lambda value: value is not None)
        )
        for one in values:
            # A filter takes no NaN and no infinity.
            if isinstance(one, float) and not math.isfinite(one):
                continue
            all_conditions += [
                Condition(f"{name} {operator} {sql(one)}", name, _compares(operator, one))
                for operator in ("=", "<", "<=", ">", ">=", "<>")
            ]
    return st.lists(st.sampled_from(all_conditions), min_size=_CONDITIONS, max_size=_CONDITIONS)


def lost(
    client: Client, table: str, files: Mapping[str, pa.Table], conditions: Sequence[Condition]
) -> list[tuple[str, str]]:
    """Return the conditions for which a plan lacks a file with matching rows, and the file.

    Also those for which a plan says of a file that all its rows match, and some do not.

    Args:
        client: A client.
        table: The table's name.
        files: The rows of each file, by the last part of its path.
        conditions: The conditions.
    """
    losses = []
    for condition in conditions:
        residuals = {
            split["path"].rpartition("/")[2]: group["residual_filter"]
            for group in client.plan(table, filter=condition.sql).groups.to_pylist()
            for split in group["splits"]
        }
        for file, rows in files.items():
            matches = [condition.holds(value) for value in rows[condition.column].to_pylist()]
            if any(matches) and file not in residuals:
                losses.append((condition.sql, file))
            elif file in residuals and residuals[file] is None and not all(matches):
                losses.append((f"{condition.sql}, without a residual filter", file))
    return losses


def _compares(operator: str, literal: Any) -> Callable[[Any], bool]:
    def order(value: Any) -> int:
        # NaN is greater than every number.
        if isinstance(value, float) and math.isnan(value):
            return 1
        if isinstance(value, str):
            one, other = value.encode(), literal.encode()
            return int(one > other) - int(one < other)
        return int(value > literal) - int(value < literal)

    holds: Mapping[str, Callable[[int], bool]] = {
        "=": lambda sign: sign == 0,
        "<": lambda sign: sign < 0,
        "<=": lambda sign: sign <= 0,
        ">": lambda sign: sign > 0,
        ">=": lambda sign: sign >= 0,
        "<>": lambda sign: sign != 0,
    }
    return lambda value: value is not None and holds[operator](order(value))
