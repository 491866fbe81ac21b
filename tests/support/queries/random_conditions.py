"""Random tables with a column of each type, and random conditions on them as SQL."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

# A column of each type that Spark compares, by the name of its type in SQL.
TYPES: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "decimal(9,2)": pa.decimal128(9, 2),
    "decimal(38,10)": pa.decimal128(38, 10),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
PARTITION = {"region": "string", "number": "int"}
_DAY = dt.date(2026, 3, 8)
# In New York, an hour of this night is missing.
_NIGHT = dt.datetime.fromisoformat("2026-03-08T06:00")
_FLOATS = [-1.5, -0.0, 0.0, 0.5, 1024.0, math.nan, math.inf, -math.inf]
_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "boolean": st.booleans(),
    **{name: st.integers(-2, 3) for name in ("tinyint", "smallint", "int", "bigint")},
    **dict.fromkeys(("float", "double"), st.sampled_from(_FLOATS)),
    "decimal(9,2)": st.decimals(-2, 2, places=1),
    "decimal(38,10)": st.sampled_from([Decimal("-0.0000000001"), Decimal(0), Decimal("9" * 27)]),
    "string": st.sampled_from(["", "a", "ab", "é", "a%", "7", "007", "NULL", "NaN"]),
    "binary": st.sampled_from([b"", b"\x00", b"a", b"\xff\xfe"]),
    "date": st.integers(-2, 2).map(lambda days: _DAY + dt.timedelta(days=days)),
    **dict.fromkeys(
        ("timestamp", "timestamp_ntz"),
        st.integers(-3, 3).map(lambda halves: _NIGHT + halves * dt.timedelta(minutes=30)),
    ),
}
_SIGNS = ("=", "<>", "<", "<=", ">", ">=", "<=>")


def column_of(type_: str) -> str:
    """Return the name of the column of a type."""
    return "c_" + "".join(one if one.isalnum() else "_" for one in type_).rstrip("_")


_TYPE_OF = {column_of(type_): type_ for type_ in TYPES} | PARTITION


@st.composite
def tables(draw: st.DrawFn) -> dict[str, pa.Table]:
    """Draw the files of a table, by path; the column `row` numbers all rows."""
    files = {}
    first = 0
    for number in range(draw(st.integers(2, 5))):
        region = draw(st.sampled_from(["a", "x%20y", "__HIVE_DEFAULT_PARTITION__"]))
        folder = f"region={region}/number={draw(st.integers(1, 2))}"
        count = draw(st.integers(1, 6))
        columns = {"row": pa.array(range(first, first + count), pa.int64())}
        for name, type_ in TYPES.items():
            values = st.lists(st.none() | _VALUES[name], min_size=count, max_size=count)
            columns[column_of(name)] = pa.array(draw(values), type_)
        files[f"{folder}/part-{number}.parquet"] = pa.table(columns)
        first += count
    return files


@st.composite
def comparisons(draw: st.DrawFn) -> str:
    """Draw a comparison of one column with constants, some of which are NULL."""
    column = draw(st.sampled_from(sorted(_TYPE_OF)))
    type_ = _TYPE_OF[column]
    values = st.one_of(_VALUES[type_].map(lambda value: literal(value, type_)), st.just("NULL"))
    kinds = ["sign", "sign", "in", "between", "null"]
    kinds += ["like"] if type_ == "string" else ["bare"] if type_ == "boolean" else []
    kind = draw(st.sampled_from(kinds))
    if kind == "sign":
        sides = [column, draw(values)]
        sign = draw(st.sampled_from(_SIGNS))
        return f" {sign} ".join(sides if draw(st.booleans()) else sides[::-1])
    if kind == "in":
        return f"{column} IN ({', '.join(draw(st.lists(values, min_size=1, max_size=12)))})"
    if kind == "between":
        return f"{column} BETWEEN {draw(values)} AND {draw(values)}"
    if kind == "like":
        return f"{column} LIKE '{draw(st.sampled_from(['a', 'é', '00']))}%'"
    return column if kind == "bare" else f"{column} IS {draw(st.sampled_from(['', 'NOT ']))}NULL"


def conditions() -> st.SearchStrategy[str]:
    """Draw conditions of comparisons, nested."""
    return st.recursive(
        comparisons(),
        lambda parts: st.one_of(
            parts.map(lambda part: f"NOT ({part})"),
            st.tuples(parts, st.sampled_from(["AND", "OR"]), parts).map(
                lambda three: f"({three[0]}) {three[1]} ({three[2]})"
            ),
        ),
        max_leaves=5,
    )


def literal(value: Any, type_: str) -> str:
    """Return a value of a type as Spark's SQL."""
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    text = str(value).replace("'", "\\'")
    if type_ == "boolean":
        return text.upper()
    if type_ == "timestamp":
        return f"TIMESTAMP_LTZ'{text} UTC'"
    if type_ == "timestamp_ntz":
        return f"TIMESTAMP_NTZ'{text}'"
    return f"'{text}'" if type_ == "string" else f"CAST('{text}' AS {type_})"
