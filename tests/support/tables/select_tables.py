"""Small tables of every kind for random queries: their files, columns, and values as literals."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.orc as po
import pyarrow.parquet as pq

from tests.support.tables.delta_tables import DeltaLog, column, metadata, protocol
from tests.support.tables.partition_schemes import NULL, VALUES

_FIRST = dt.datetime(2025, 11, 1, 22, tzinfo=dt.timezone.utc)
# What rows of files have. Sums of the floats are the same in any order.
_DATA: Mapping[str, Sequence[Any]] = {
    "int": (None, -3, 0, 1, 1, 2, 3, 5, 7, 12),
    "text": (None, "", "a", "a", "A", "ab", "é", "1", "x y", "a%b"),
    "real": (None, -1.5, -0.0, 0.0, 0.25, 7.0, 1024.0, math.nan, math.inf, -math.inf),
    "dec": tuple(
        None if text == "" else Decimal(text)
        for text in ("", "-0.01", "0.00", "1.50", "7.00", "99.99")
    ),
    "day": (
        None,
        *(dt.date(2025, 7, 30) + dt.timedelta(days) for days in range(5)),
        dt.date(1969, 12, 31),
    ),
    "time": (None, *(_FIRST + dt.timedelta(hours=2 * hours) for hours in range(8))),
    "local": (
        None,
        *((_FIRST + dt.timedelta(hours=hours)).replace(tzinfo=None) for hours in range(6)),
    ),
    "flag": (None, True, False),
    "struct": (None, {"a": 1, "b": "a"}, {"a": None, "b": "é"}, {"a": 7, "b": None}),
    "list": (None, [], [1], [1, 2, None], [7, 7]),
}
_ARROW: Mapping[str, pa.DataType] = {
    "int": pa.int32(),
    "text": pa.string(),
    "real": pa.float64(),
    "dec": pa.decimal128(10, 2),
    "day": pa.date32(),
    "time": pa.timestamp("us", "UTC"),
    "local": pa.timestamp("us"),
    "flag": pa.bool_(),
    "struct": pa.struct([("a", pa.int32()), ("b", pa.string())]),
    "list": pa.list_(pa.int32()),
}
# Narrower types in some files, which Spark reads as the wider ones from version 4 on.
_NARROW = {"real": pa.float32(), "dec": pa.decimal128(9, 2), "id": pa.int32()}
_KINDS = {
    **dict.fromkeys(("smallint", "int", "bigint"), "int"),
    **dict.fromkeys(("float", "double"), "real"),
    "string": "text",
    "date": "day",
    "timestamp": "time",
    "timestamp_ntz": "local",
    "decimal(6,2)": "dec",
    "boolean": "flag",
}
# Sums of others depend on the order of rows.
_EXACT = ("0.5", "-0.0", "0.0", "7", "-2", "NaN", "Infinity", "-Infinity", "16777217")
# The day after it is none of Python's.
_LAST_DAY = "9999-12-31"
_TYPES = {"dec": "decimal(10,2)", "time": "timestamp", "local": "timestamp_ntz", "text": "string"}
_TYPES |= {"int": "int", "real": "double", "day": "date", "flag": "boolean"}


@dataclass(frozen=True, slots=True)
class Kept:
    """One table.

    Attributes:
        columns: The columns that queries use, each with its kind of value.
        partition: Its partition columns with their types, outermost first.
        format: Its format; Spark reads the files of a Delta table as Parquet.
        options: How they are read.
        types: All columns with their types, if the files do not tell them.
        weight: How often queries use it.
    """

    columns: Mapping[str, str]
    partition: Mapping[str, str] = field(default_factory=dict)
    format: str = "parquet"
    options: Mapping[str, str] = field(default_factory=dict)
    types: Mapping[str, str] | None = None
    weight: int = 1


@dataclass(frozen=True)
class Tables:
    """The tables of one seed, in a folder each.

    Attributes:
        folder: Where they are.
        tables: What they are, by name.
        literals: Some values of each kind, as SQL writes them.
        has_float_statistics: Whether files have bounds of floats, by which Spark's reader skips
            NaN and -0.0.
    """

    folder: Path
    tables: Mapping[str, Kept]
    literals: Mapping[str, Sequence[str]]
    has_float_statistics: bool


def write(folder: Path, seed: str, *, has_narrow_files: bool) -> Tables:
    """Write the tables of a seed.

    Args:
        folder: Where to write them.
        seed: What they depend on.
        has_narrow_files: Whether some files have narrower types than the table.
    """
    random = Random(seed)
    has_statistics = random.random() < 0.5
    makers = _Makers(
        folder, random, has_narrow_files=has_narrow_files, has_float_statistics=has_statistics
    )
    tables = {
        "t": makers.days(),
        "u": makers.odd_partitions(),
        "w": makers.orc(),
        "c": makers.csv(),
        "b": makers.large(),
        "g": makers.delta(),
    }
    literals = {kind: _literals(kind, makers.values) for kind in _TYPES}
    return Tables(folder, tables, literals, has_statistics)


class _Makers:
    def __init__(
        self, folder: Path, random: Random, *, has_narrow_files: bool, has_float_statistics: bool
    ) -> None:
        self._folder = folder
        self._random = random
        self._has_narrow_files = has_narrow_files
        self._has_float_statistics = has_float_statistics
        self.values: list[tuple[str, Any]] = []
        self._next_id = 0

    def days(self) -> Kept:
        """Write files in folders of days and of odd texts, some without a column."""
        columns = {"id": "int", "v": "int", "s": "text", "x": "real", "p": "dec", "at": "time"}
        columns |= {"f": "flag", "o": "struct", "l": "list"}
        partition = {"ds": "date", "h": "string"}
        self._write_folders("t", columns, partition, 9)
        return Kept({**columns, "ds": "day", "h": "text"}, partition, weight=5)

    def odd_partitions(self) -> Kept:
        """Write files in folders of values of one or two types."""
        columns = {"k": "int", "v": "int", "s": "text", "d": "day", "x": "real", "n": "local"}
        types = self._random.sample([*_KINDS], 2 if self._random.random() < 0.5 else 1)
        partition = dict(zip(("ka", "Kb"), types, strict=False))
        self._write_folders("u", columns, partition, 7)
        kinds = {name: _KINDS[type_] for name, type_ in partition.items()}
        return Kept({**columns, **kinds}, partition, weight=4)

    def orc(self) -> Kept:
        """Write ORC files in folders of numbers."""
        columns = {"id": "int", "v": "int", "s": "text", "p": "dec", "d": "day"}
        for number, year in enumerate((2024, 2025, 2025, NULL)):
            path = self._folder / "w" / f"m={year}" / f"part-{number}.orc"
            path.parent.mkdir(parents=True, exist_ok=True)
            po.write_table(self._rows(columns, self._random.randrange(7)), path)
        self.values += [("int", 2024), ("int", 2025)]
        return Kept({**columns, "m": "int"}, {"m": "int"}, "orc", weight=2)

    def csv(self) -> Kept:
        """Write a file of text, which only Spark's own reader reads."""
        columns = {"k": "int", "s": "text", "d": "day", "x": "real"}
        path = self._folder / "c" / "part-0.csv"
        path.parent.mkdir(parents=True)
        pc.write_csv(self._rows(columns, 8), path)
        types = {name: _TYPES[kind] for name, kind in columns.items()}
        return Kept(columns, {}, "csv", {"header": "true"}, types)

    def large(self) -> Kept:
        """Write files of so many bytes that Spark's own reader reads them, in few rows."""
        columns = {"id": "int", "v": "int", "s": "text", "at": "time"}
        for number in range(2):
            rows = self._rows(columns, 8)
            fat = pa.array([self._random.randbytes(400_000) for _ in range(8)], pa.binary())
            path = self._folder / "b" / f"part-{number}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(rows.append_column("fat", fat), path, row_group_size=4)
        return Kept(columns)

    def delta(self) -> Kept:
        """Write a Delta table, all of whose files are current."""
        columns = {"v": "int", "s": "text", "d": "day"}
        log = DeltaLog(self._folder / "g")
        types = {"int": "integer", "text": "string", "day": "date"}
        fields = [column(name, types[kind]) for name, kind in columns.items()]
        files = [
            log.write_file(f"part-{number}.parquet", self._rows(columns, 4)) for number in range(2)
        ]
        log.commit(protocol(), metadata(fields), *files)
        return Kept(columns, format="delta")

    def _write_folders(
        self, name: str, columns: Mapping[str, str], partition: Mapping[str, str], count: int
    ) -> None:
        choices = [self._texts(type_) for type_ in partition.values()]
        folders = {tuple(self._random.choice(texts) for texts in choices) for _ in range(count)}
        for number, texts in enumerate(sorted(folders)):
            for kind, text, type_ in zip(
                map(_KINDS.get, partition.values()), texts, partition.values(), strict=True
            ):
                if text != NULL and kind is not None:
                    self.values.append((kind, VALUES[type_][text]))
            parts = [f"{column}={text}" for column, text in zip(partition, texts, strict=True)]
            for part in range(self._random.choice((1, 1, 2))):
                path = self._folder.joinpath(name, *parts, f"part {number}-{part}.parquet")
                path.parent.mkdir(parents=True, exist_ok=True)
                # The first file has all columns, in the types of the table.
                is_first = number == part == 0
                rows = self._rows(columns, self._random.choice((0, 1, 2, 3, 4)))
                self._write_parquet(path, rows if is_first else self._changed(rows, columns))

    def _texts(self, type_: str) -> list[str]:
        texts = [
            text
            for text in VALUES[type_]
            if text != _LAST_DAY and (type_ not in ("float", "double") or text in _EXACT)
        ]
        return [*self._random.sample(texts, min(5, len(texts))), NULL]

    def _rows(self, columns: Mapping[str, str], count: int) -> pa.Table:
        arrays = {}
        for name, kind in columns.items():
            if name == "id":
                values = list(range(self._next_id, self._next_id + count))
                self._next_id += count
                arrays[name] = pa.array(values, pa.int64())
                continue
            values = self._random.choices(_DATA[kind], k=count)
            self.values += [(kind, value) for value in values]
            arrays[name] = pa.array(values, _ARROW[kind])
        return pa.table(arrays)

    def _changed(self, rows: pa.Table, columns: Mapping[str, str]) -> pa.Table:
        for name, kind in columns.items():
            chance = self._random.random()
            if chance < 0.07 and name != "id":
                rows = rows.drop_columns([name])
            elif chance < 0.2 and self._has_narrow_files and (kind in _NARROW or name == "id"):
                place = rows.column_names.index(name)
                narrow = rows[name].cast(_NARROW["id" if name == "id" else kind])
                rows = rows.set_column(place, name, narrow)
            elif chance < 0.25 and kind == "text":
                place = rows.column_names.index(name)
                rows = rows.set_column(place, name, rows[name].dictionary_encode())
        return rows

    def _write_parquet(self, path: Path, rows: pa.Table) -> None:
        if self._has_float_statistics:
            pq.write_table(rows, path)
            return
        names = [f.name for f in rows.schema if not pa.types.is_floating(f.type)]
        nested = {"o": ("o.a", "o.b"), "l": ("l.list.element",)}
        leaves = [leaf for name in names for leaf in nested.get(name, (name,))]
        pq.write_table(rows, path, write_statistics=leaves, use_dictionary=leaves)


def _literals(kind: str, values: Sequence[tuple[str, Any]]) -> list[str]:
    """Return some values of a kind as literals, the most frequent ones several times."""
    texts = [
        _literal(kind, value) for other, value in values if other == kind and value is not None
    ]
    return sorted(texts)[:: max(1, len(texts) // 40)] or ["NULL"]


def _literal(kind: str, value: Any) -> str:
    if kind == "real":
        return f"double('{value}')"
    if kind == "flag":
        return str(value).lower()
    if kind == "text":
        text = value.replace("\\", "\\\\").replace("'", "\\'")
        return f"'{text}'"
    if kind == "day":
        return f"DATE'{value}'"
    if kind == "time":
        return f"TIMESTAMP'{value.astimezone(dt.timezone.utc).replace(tzinfo=None)}Z'"
    if kind == "local":
        return f"TIMESTAMP_NTZ'{value}'"
    if kind == "dec":
        return str(value)
    return str(value)
