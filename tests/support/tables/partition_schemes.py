"""Partitioned tables of tiny files, with partition columns of every type and odd texts."""

from __future__ import annotations

import datetime as dt
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

NULL = "__HIVE_DEFAULT_PARTITION__"


def _utc(*parts: int) -> dt.datetime:
    return dt.datetime(*parts, tzinfo=dt.timezone.utc)  # type: ignore[misc,arg-type]


def _local(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text)


# The kind of timestamps whose texts have no offset, so that each session reads other instants.
LOCAL = "local time"
# The texts of folders, with their values. Texts of one value, and values that compare in another
# order than their texts, are among them.
VALUES: Mapping[str, Mapping[str, Any]] = {
    "int": {"1": 1, "01": 1, "7": 7, "12": 12, "-3": -3, "0": 0, "2147483647": 2**31 - 1},
    "bigint": {"1": 1, "007": 7, "7": 7, "9000000000": 9 * 10**9, "-9000000000": -9 * 10**9},
    "smallint": {"5": 5, "-32768": -(2**15), "0007": 7},
    "string": {
        **{text: text for text in ("a", "A", "ab", "01", "1", "é", "日本", "null", "x y", " ")},
        **{text: text for text in ("a'b", 'a"b', "a+b", "2025-08-01", "2025-1", "true", "1.50")},
        "a%25b": "a%b",
        "a%3Db": "a=b",
        "%41": "A",
        "a%2Fb": "a/b",
        "a%5F": "a_",
        "a%zz": "a%zz",
        "%5Cx": "\\x",
        "a\tb": "a\tb",
        "2025-08-01 00%3A00%3A00": "2025-08-01 00:00:00",
    },
    "date": {
        "2025-08-01": dt.date(2025, 8, 1),
        "2025-08-31": dt.date(2025, 8, 31),
        "2025-01-01": dt.date(2025, 1, 1),
        "2024-02-29": dt.date(2024, 2, 29),
        "1969-12-31": dt.date(1969, 12, 31),
        "1582-10-04": dt.date(1582, 10, 4),
        "9999-12-31": dt.date(9999, 12, 31),
    },
    "timestamp": {
        # New York's clocks go forward at the first, and back between the second and the third.
        "2025-03-09 07%3A00%3A00Z": _utc(2025, 3, 9, 7),
        "2025-11-02 05%3A30%3A00Z": _utc(2025, 11, 2, 5, 30),
        "2025-11-02T06:30:00Z": _utc(2025, 11, 2, 6, 30),
        "2025-11-02 07%3A30%3A00+01:00": _utc(2025, 11, 2, 6, 30),
        "2025-08-01 00%3A00%3A00.000001Z": _utc(2025, 8, 1, 0, 0, 0, 1),
        "2024-12-31 23%3A59%3A59.999999Z": _utc(2024, 12, 31, 23, 59, 59, 999_999),
        "1969-12-31 23%3A59%3A59.5Z": _utc(1969, 12, 31, 23, 59, 59, 500_000),
    },
    "timestamp_ntz": {
        "2025-11-02 01%3A30%3A00": _local("2025-11-02 01:30:00"),
        # A time that New York's clocks do not show.
        "2025-03-09T02:30:00": _local("2025-03-09 02:30:00"),
        "2025-08-01 00%3A00%3A00": _local("2025-08-01 00:00:00"),
        "1969-12-31 23%3A59%3A59.5": _local("1969-12-31 23:59:59.500000"),
    },
    LOCAL: {
        "2025-11-02 01%3A30%3A00": _local("2025-11-02 01:30:00"),
        "2025-11-02 02%3A00%3A00": _local("2025-11-02 02:00:00"),
        # One instant in New York, whose clocks do not show the first.
        "2025-03-09 02%3A30%3A00": _local("2025-03-09 02:30:00"),
        "2025-03-09 03%3A30%3A00": _local("2025-03-09 03:30:00"),
        "2025-03-09 03%3A00%3A00": _local("2025-03-09 03:00:00"),
        "2025-08-01 00%3A00%3A00": _local("2025-08-01 00:00:00"),
        "2025-08-01": _local("2025-08-01 00:00:00"),
        "1969-12-31 23%3A59%3A59.5": _local("1969-12-31 23:59:59.500000"),
        "1883-11-18 12%3A01%3A00": _local("1883-11-18 12:01:00"),
    },
    "boolean": {"true": True, "false": False, "TRUE": True},
    # Spark takes the digits of a text of another scale for those of the column's.
    "decimal(6,2)": {
        text: Decimal(text) for text in ("1.50", "-0.01", "0.00", "100.00", "9999.99", "7.00")
    },
    "binary": {"a": b"a", "%41": b"A", "é": "é".encode(), "0": b"0", "2025-08-01": b"2025-08-01"},
    "float": {"0.1": 0.1, "0.5": 0.5, "-0.0": -0.0, "16777217": 2.0**24, "NaN": math.nan},
    "double": {
        **{text: float(text) for text in ("0.5", "-0.0", "0.0", "7", "1e10", "1.5E-3", "-2")},
        "NaN": math.nan,
        "Infinity": math.inf,
        "-Infinity": -math.inf,
    },
}
_ARROW: Mapping[str, pa.DataType] = {
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "string": pa.string(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    LOCAL: pa.timestamp("us"),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
    "float": pa.float32(),
    "decimal(6,2)": pa.decimal128(6, 2),
    "double": pa.float64(),
}
NAMES = ("ds", "Hour", "k v")

# Scans of the parts of one query are told apart by the mark that each part asks for.
MARKS = tuple(f"m{number}" for number in range(10))
DATA: Mapping[str, str] = {
    "id": "bigint",
    "v": "int",
    "s": "string",
    "d": "date",
    **dict.fromkeys(MARKS, "int"),
}
_TEXTS = ("", "a", "ab", "é", "1", "2025-08-01")


@dataclass(frozen=True, slots=True)
class File:
    """One file: the texts of its folders, outermost first, and the rows in it."""

    texts: tuple[str, ...]
    rows: tuple[tuple[int, int | None, str | None, dt.date | None], ...]


@dataclass(frozen=True, slots=True)
class Scheme:
    """A partitioned table.

    Attributes:
        kinds: Its partition columns, outermost first, with the kinds of their values in `VALUES`.
        files: Its files.
        is_explicit: Whether the types are given to both sides, instead of being inferred by each.
        is_by_spark: Whether Spark writes the table, from the rows of these files.
    """

    kinds: Mapping[str, str]
    files: Sequence[File]
    is_explicit: bool
    is_by_spark: bool

    @property
    def types(self) -> dict[str, str]:
        """The types of its partition columns in Spark SQL."""
        return {name: "timestamp" if kind == LOCAL else kind for name, kind in self.kinds.items()}

    @property
    def schema(self) -> str:
        """All columns, as Spark's readers take them."""
        columns = {**DATA, **self.types}
        return ", ".join(f"`{name}` {type_}" for name, type_ in columns.items())

    def values(self, name: str) -> list[Any]:
        """Return the values of a partition column in the order of files; None for null."""
        at, values = list(self.kinds).index(name), VALUES[self.kinds[name]]
        return [values.get(file.texts[at]) for file in self.files]

    def write(self, location: Path) -> None:
        """Write the files."""
        for number, file in enumerate(self.files):
            folders = (f"{name}={text}" for name, text in zip(self.types, file.texts, strict=True))
            path = location.joinpath(*folders, f"part-{number:05d}.parquet")
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(_data(file.rows), path)


def _data(rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    ids, numbers, texts, days = zip(*rows, strict=True) if rows else ((), (), (), ())
    columns = {
        "id": pa.array(ids, pa.int64()),
        "v": pa.array(numbers, pa.int32()),
        "s": pa.array(texts, pa.string()),
        "d": pa.array(days, pa.date32()),
    }
    marks = pa.array(range(len(rows)), pa.int32())
    return pa.table(columns | dict.fromkeys(MARKS, marks))


def _rows(draw: st.DrawFn, first: int, count: int) -> tuple[Any, ...]:
    numbers = st.none() | st.integers(-3, 12)
    texts = st.none() | st.sampled_from(_TEXTS)
    days = st.none() | st.dates(dt.date(2025, 7, 30), dt.date(2025, 8, 2))
    return tuple((first + nth, draw(numbers), draw(texts), draw(days)) for nth in range(count))


@st.composite
def schemes(draw: st.DrawFn, max_folders: int = 9) -> Scheme:
    """Draw a table of up to `max_folders` folders with one or two files in each."""
    count = draw(st.integers(1, 3))
    kinds = draw(
        st.lists(
            st.sampled_from(list(VALUES)),
            min_size=count,
            max_size=count,
        )
    )
    columns_of = dict(zip(NAMES, kinds, strict=False))
    texts = [st.sampled_from([*VALUES[kind], NULL]) for kind in kinds]
    folders = draw(st.lists(st.tuples(*texts), min_size=3, max_size=max_folders, unique=True))
    files, ids = [], itertools.count(step=4)
    for folder in folders:
        for _ in range(draw(st.sampled_from([1, 1, 2]))):
            rows = draw(st.sampled_from([0, 1, 2, 2, 3]))
            files.append(File(folder, _rows(draw, next(ids), rows)))
    columns = list(zip(*folders, strict=True))
    # What Spark infers for nulls, Windrow does not; flags and bytes are not inferred.
    only_nulls = any(set(column) == {NULL} for column in columns)
    must_be_explicit = only_nulls or bool({"boolean", "binary"} & {*kinds})
    # Spark writes times without their offsets, and no files without rows.
    is_writable = "timestamp" not in kinds and any(file.rows for file in files)
    is_by_spark = is_writable and draw(st.sampled_from([False, False, True]))
    is_explicit = must_be_explicit or is_by_spark or draw(st.booleans())
    return Scheme(columns_of, files, is_explicit=is_explicit, is_by_spark=is_by_spark)


def small_table(scheme: Scheme, places: Sequence[int | None]) -> pa.Table:
    """Return a table with keys of a scheme's partitions, to be joined with it.

    Args:
        scheme: The other table.
        places: The number of a file, for each row, whose partition has the row's keys; None for a
            row of nulls.

    Returns:
        Keys `k0` to `k2`, one for each partition column; `number`, `text` and `day`, of values that
        columns of files have; `word`, which tells rows apart; and `chosen`, which is true for every
        other row.
    """
    columns = {}
    for number, (name, kind) in enumerate(scheme.kinds.items()):
        values = scheme.values(name)
        keys = [None if place is None else values[place % len(values)] for place in places]
        columns[f"k{number}"] = pa.array(keys, _ARROW[kind])
    columns["number"] = pa.array(places, pa.int32())
    columns["text"] = pa.array(
        [None if place is None else _TEXTS[place % len(_TEXTS)] for place in places], pa.string()
    )
    columns["day"] = pa.array(
        [None if place is None else dt.date(2025, 7, 29) + dt.timedelta(place) for place in places],
        pa.date32(),
    )
    columns["word"] = pa.array([f"w{number}" for number in range(len(places))])
    columns["chosen"] = pa.array([number % 2 == 0 for number in range(len(places))])
    return pa.table(columns)
