"""What engines are asked to read, and how the matrix of the documents words it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timezone
from decimal import Decimal, localcontext
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.support.engines import delta_tables, iceberg_tables
from tests.support.files.shapes import (
    MAP_KEY_VALUE,
    Element,
    in_two_levels,
    renamed,
    repeated_alone,
    reshape,
)
from tests.support.tables.acid_tables import AcidTable

Rows = list[tuple[Any, ...]]
ENGINES = ("DuckDB", "Polars", "Polars, own planner", "PyIceberg")
# Only at night: what they need is large.
ON_SPARK = ("Spark with Iceberg", "Sail")
ALL_ENGINES = (*ENGINES, *ON_SPARK, "Trino")


@dataclass(frozen=True, slots=True)
class EngineCase:
    """A table of a few files.

    Attributes:
        name: Its name.
        words: What the documents call it.
        files: The columns of each file, by its path.
        options: How files are written.
        rows: The rows that it has; empty if it is refused.
        refusal: What the refusal says; empty if the table is served.
        columns: Columns to register; by default, those of the files.
        partitions: Where the partitions of the column `p` are that a catalog lists, by value; empty if
            folders have the values.
        later: Files that take the place of others once the table is described.
        format: Format of the table.
        transactional: Its kind, if the table is one of Hive's transactional ones.
        write_ids: For an insert-only table: the valid write ids.
        make: What writes the table, if that is not a folder of files.
        trouble: What engines that do not return the rows do instead, by their name.
    """

    name: str
    words: str
    files: Mapping[str, Mapping[str, pa.Array] | pa.Table]
    rows: Rows = field(default_factory=list)
    options: Mapping[str, Any] = field(default_factory=dict)
    refusal: str = ""
    columns: Mapping[str, str] | None = None
    partitions: Mapping[str, str] = field(default_factory=dict)
    later: Mapping[str, Mapping[str, pa.Array]] = field(default_factory=dict)
    trouble: Mapping[str, str] = field(default_factory=dict)
    format: str = "parquet"
    transactional: str | None = None
    write_ids: str | None = None
    make: Callable[[Path], None] | None = None

    def write(self, folder: Path) -> None:
        """Write the files."""
        if self.make is not None:
            self.make(folder)
        self._write(folder, self.files)

    def replace(self, folder: Path) -> None:
        """Write the later files."""
        self._write(folder, self.later)

    def partition_list(self, folder: Path) -> pa.Table:
        """Return the list of partitions, as a catalog has it."""
        values = [[value] for value in self.partitions]
        folders = [os.path.normpath(folder / path) for path in self.partitions.values()]
        types = pa.schema([("values", pa.list_(pa.string())), ("location", pa.string())])
        return pa.table([values, folders], types)

    def _write(self, folder: Path, files: Mapping[str, Mapping[str, pa.Array] | pa.Table]) -> None:
        for path, columns in files.items():
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            table = columns if isinstance(columns, pa.Table) else pa.table(dict(columns))
            pq.write_table(table, file, **self.options)


def _column(values: Sequence[Any], type_: pa.DataType | None = None) -> dict[str, pa.Array]:
    return {"v": pa.array(values, type_)}


def _one(
    name: str, words: str, values: Sequence[Any], type_: pa.DataType | None = None, **more: Any
) -> EngineCase:
    """Return a table of one file with one column."""
    rows = [] if "refusal" in more else [(value,) for value in values]
    return EngineCase(name, words, {"f": _column(values, type_)}, **{"rows": rows, **more})


def _decimal(text: str) -> Decimal:
    with localcontext() as context:
        context.prec = 40
        return Decimal(text)


_UTC_US = pa.timestamp("us", tz="UTC")
_OLD = datetime(1500, 1, 1, 12, tzinfo=timezone.utc)
_LATE = datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=timezone.utc)
_NEW = datetime(2024, 5, 6, 7, 8, 9, 123456, tzinfo=timezone.utc)
_ODD = "a/b%= x ü'"
_LONGEST = [_decimal("1" + "2345678901" * 3 + "2345678"), _decimal("-9" * 1 + "8" * 37), None]


def _partitioned() -> EngineCase:
    files: dict[str, dict[str, pa.Array]] = {
        "ds=2026-11-01/n=1/c=a%2Fb%25%3D x ü%27/f": {"id": pa.array([1, 2])},
        "ds=2026-11-02/n=__HIVE_DEFAULT_PARTITION__/c=__HIVE_DEFAULT_PARTITION__/f": {
            "id": pa.array([3])
        },
        "ds=__HIVE_DEFAULT_PARTITION__/n=2/c=x/f": {
            "id": pa.array([4]),
            "more": pa.array(["added"]),
        },
        "ds=1500-02-03/n=-7/c=x/f": {"id": pa.array([5]), "more": pa.array([None], pa.string())},
    }
    rows: Rows = [
        (1, None, date(2026, 11, 1), 1, _ODD),
        (2, None, date(2026, 11, 1), 1, _ODD),
        (3, None, date(2026, 11, 2), None, None),
        (4, "added", None, 2, "x"),
        (5, None, date(1500, 2, 3), -7, "x"),
    ]
    words = "partitions of dates, ints and texts, null ones, odd characters, a column added later"
    trouble = {"Sail": "error: odd characters"}
    return EngineCase("partitioned", words, files, rows, trouble=trouble)


def _hourly() -> EngineCase:
    files = {
        f"hour={text}/f": {"id": pa.array([number])}
        for number, text in enumerate(
            ("2026-11-28 09%3A00%3A00", "2026-03-29 02%3A30%3A00.5", "__HIVE_DEFAULT_PARTITION__")
        )
    }
    rows: Rows = [
        (0, datetime(2026, 11, 28, 9)),  # noqa: DTZ001 - a local time
        (1, datetime(2026, 3, 29, 2, 30, 0, 500_000)),  # noqa: DTZ001 - a local time
        (2, None),
    ]
    words = "partitions of [hours](tables.md#times-in-folders), as times without a zone"
    return EngineCase("hourly", words, files, rows)


def _hostile() -> EngineCase:
    """Return a table that has most of what the others have, at once."""
    day, price = date(1500, 2, 3), _decimal("1" + "2345678901" * 3 + "2345678")
    number = pa.array([127], pa.int8())
    first = {
        "Id": pa.array([1], pa.int32()),
        "tiny": number,
        "price": pa.array([price], pa.decimal128(38, 0)),
        "day": pa.array([day]),
        "at": pa.array([_NEW], _UTC_US),
        "gone": pa.array(["dropped"]),
    }
    second = {
        "at": pa.array([_NEW, None], _UTC_US),
        "more": pa.array(["added", ""]),
        "id": pa.array([2**40, 3], pa.int64()),
        "day": pa.array([None, date(9999, 12, 31)]),
    }
    files = {
        "c=x y/n=-1/f": first,
        "c=__HIVE_DEFAULT_PARTITION__/n=__HIVE_DEFAULT_PARTITION__/f": second,
    }
    columns = {
        "id": "bigint",
        "tiny": "tinyint",
        "price": "decimal(38,0)",
        "day": "date",
        "at": "timestamp",
        "more": "string",
    }
    rows: Rows = [
        (1, 127, price, day, _NEW, None, "x y", -1),
        (2**40, None, None, None, _NEW, "added", None, None),
        (3, None, None, date(9999, 12, 31), None, "", None, None),
    ]
    words = (
        "most of it at once: null partitions; columns added, widened, dropped, renamed in case; "
        "`tinyint`, `decimal(38, 0)`, old dates"
    )
    return EngineCase(
        "hostile",
        words,
        files,
        rows,
        columns=columns,
    )


def _iceberg(
    name: str, words: str, make: Callable[[Path], None], rows: Rows, **trouble: str
) -> EngineCase:
    """Return a registered Iceberg table."""
    words = f"an Iceberg table, {words}"
    return EngineCase(name, words, {}, rows, format="iceberg", make=make, trouble=trouble)


def _delta(
    name: str,
    words: str,
    make: Callable[[Path], None],
    rows: Sequence[tuple[Any, ...]] = (),
    *,
    refusal: str = "",
    **trouble: str,
) -> EngineCase:
    """Return a Delta table."""
    return EngineCase(
        name,
        f"a Delta table, {words}",
        {},
        list(rows),
        format="delta",
        make=make,
        refusal=refusal,
        trouble=trouble,
    )


def _marked(days: Sequence[date | None], times: Sequence[datetime | None]) -> pa.Table:
    """Return rows of a file that is marked as in the calendar before 1582."""
    names = {"d": pa.array(days, pa.date32()), "t": pa.array(times, _UTC_US)}
    return pa.table(names).replace_schema_metadata({"org.apache.spark.legacyDateTime": ""})


_NOT_IN_NANOSECONDS = dict.fromkeys(
    ("Polars", "Polars, own planner", "PyIceberg"), "error: refused"
)
_NOT_IN_JAVA = dict.fromkeys(("Spark with Iceberg", "Trino"), "error: refused")


def _shaped(
    name: str,
    words: str,
    values: Sequence[Any],
    type_: pa.DataType,
    change: Callable[[Element], None],
    trouble: Mapping[str, str] | None = None,
    *,
    is_nullable: bool = True,
) -> EngineCase:
    """Return a table of one file with one column of another shape than Arrow writes."""

    def make(folder: Path) -> None:
        folder.mkdir()
        schema = pa.schema([pa.field("v", type_, nullable=is_nullable)])
        pq.write_table(pa.table([pa.array(values, type_)], schema), folder / "f")
        reshape(folder / "f", lambda root: change(root.children[0]))

    rows = [(value,) for value in values]
    return EngineCase(name, words, {}, rows, make=make, trouble=trouble or {})


_DAY = date(2026, 11, 1)
CASES: tuple[EngineCase, ...] = (
    _partitioned(),
    _hourly(),
    _hostile(),
    EngineCase(
        "outside",
        "partitions outside the table's folder, one of empty text",
        {
            "p=a/f": _column([1]),
            "../elsewhere/b/f": _column([2]),
            "../elsewhere/c/f": _column([3]),
        },
        [(1, "a"), (2, "b="), (3, "")],
        columns={"v": "bigint"},
        partitions={"a": "p=a", "b=": "../elsewhere/b", "": "../elsewhere/c"},
    ),
    EngineCase(
        "replaced",
        "a file that was replaced after the refresh",
        {"f": _column([1, 2])},
        [(1,), (2,)],
        later={"f": _column(range(3, 3000), pa.int64())},
        trouble={
            **dict.fromkeys(ALL_ENGINES, "error"),
            "DuckDB": "rows of the new file",
            "PyIceberg": "rows of the new file",
        },
    ),
    _one("tinyint", "`tinyint`, as `int`", [-128, 127, None], pa.int8()),
    _one("smallint", "`smallint`, as `int`", [-(2**15), None], pa.int16()),
    _one("bigint", "`bigint`", [-(2**63), 2**63 - 1, None], pa.int64()),
    _one("boolean", "`boolean`", [True, False, None]),
    _one("double", "`double`", [1.5, float("-inf"), None], pa.float64()),
    _one("string", "`string`, empty and Unicode", ["", "größe €", None]),
    _one("binary", "`binary`", [b"", b"\xff\x00", None]),
    EngineCase(
        "large",
        "`string` and `binary`, written as Arrow's large ones",
        {
            "a": {
                "s": pa.array(["größe", None], pa.large_string()),
                "b": pa.array([b"\xff", None], pa.large_binary()),
                "l": pa.array([["x"], None], pa.large_list(pa.large_string())),
            },
            "b": _column([1]),
        },
        [("größe", b"\xff", ["x"], None), (None, None, None, None), (None, None, None, 1)],
    ),
    EngineCase(
        "views",
        "`string` and `binary`, written as Arrow's views",
        {
            "a": {
                "s": pa.array(["", "x" * 99, None], pa.string_view()),
                "b": pa.array([b"", b"y" * 99, None], pa.binary_view()),
            },
        },
        [("", b""), ("x" * 99, b"y" * 99), (None, None)],
    ),
    EngineCase(
        "mixed_views",
        "such views in some files only",
        {
            "a": _column(["", "x" * 99], pa.string_view()),
            "b": _column(["", "y" * 99], pa.string()),
        },
        [("",), ("x" * 99,), ("",), ("y" * 99,)],
        trouble={"PyIceberg": "error"},
    ),
    _one("decimal", "`decimal(38, 0)`", _LONGEST, pa.decimal128(38, 0)),
    _one(
        "small_decimal",
        "`decimal(9, 2)` stored as a number",
        [Decimal("1.23"), Decimal("-9999999.99"), None],
        pa.decimal128(9, 2),
        options={"store_decimal_as_integer": True},
    ),
    _one(
        "date", "`date`, before 1582 too", [date(1, 1, 1), date(1582, 10, 10), date(9999, 12, 31)]
    ),
    _one("timestamp", "`timestamp`", [_OLD, _NEW, None], _UTC_US),
    _one(
        "milliseconds",
        "`timestamp` in milliseconds",
        [_OLD],
        pa.timestamp("ms", tz="UTC"),
        trouble=dict.fromkeys(("Spark with Iceberg", "Trino"), "error: refused"),
    ),
    _one(
        "ntz",
        "`timestamp_ntz`",
        [_OLD.replace(tzinfo=None), _NEW.replace(tzinfo=None), None],
        pa.timestamp("us"),
    ),
    *(
        _one(
            name,
            f"`timestamp` as INT96, {words}",
            values,
            _UTC_US,
            options={"use_deprecated_int96_timestamps": True},
            trouble=_NOT_IN_NANOSECONDS,
        )
        for name, words, values in (
            ("int96", "from 1678 to 2262", [_NEW, None]),
            ("old_int96", "before 1678", [_OLD]),
            ("late_int96", "after 2262", [_LATE]),
        )
    ),
    _one("array", "`array`", [[1, 2], [], None], pa.list_(pa.int64())),
    _one("map", "`map`", [[("a", 1)], [], None], pa.map_(pa.string(), pa.int64())),
    _one("struct", "`struct`", [{"a": 1, "b": "x"}, {"a": None, "b": None}]),
    _one(
        "structs",
        "`array<struct>`, null",
        [[{"x": 1}], [], None],
        pa.list_(pa.struct([("x", pa.int64())])),
        trouble={"PyIceberg": "error: refused"},
    ),
    _one(
        "map_of_structs",
        "`map<string, struct>`, null",
        [[("k", {"x": 1})], [], None],
        pa.map_(pa.string(), pa.struct([("x", pa.int64())])),
        trouble={"PyIceberg": "error: refused"},
    ),
    _one(
        "small_keys",
        "`map<smallint, …>`",
        [[(1, 2)], [], None],
        pa.map_(pa.int16(), pa.int16()),
        trouble=dict.fromkeys(("Polars", "Polars, own planner"), "error: refused"),
    ),
    _shaped(
        "hive_list",
        "`array` as Hive writes it, in groups `bag`",
        [[1, None], [], None],
        pa.list_(pa.int32()),
        renamed("bag", "array_element"),
    ),
    _shaped(
        "hive_list_in_map",
        "such arrays in maps",
        [[("k", [1, None])], [], None],
        pa.map_(pa.string(), pa.list_(pa.int32())),
        lambda own: renamed("bag", "array_element")(own.children[0].children[1]),
        {"DuckDB": "error: refused"},
    ),
    _shaped(
        "two_levels",
        "`array` of two levels (parquet-avro, Spark's `writeLegacyFormat`)",
        [[1, 2], [], None],
        pa.list_(pa.field("element", pa.int32(), nullable=False)),
        in_two_levels(),
        _NOT_IN_JAVA,
    ),
    _shaped(
        "two_levels_of_structs",
        "such arrays of structs of one field",
        [[{"x": 1}, {"x": None}], []],
        pa.list_(pa.field("element", pa.struct([("x", pa.int64())]), nullable=False)),
        in_two_levels(),
        {"DuckDB": "error: refused", **_NOT_IN_JAVA},
        is_nullable=False,
    ),
    _shaped(
        "repeated",
        "repeated fields, as `array`",
        [[1, 2], []],
        pa.list_(pa.field("element", pa.int32(), nullable=False)),
        repeated_alone,
        _NOT_IN_JAVA,
        is_nullable=False,
    ),
    _shaped(
        "hive_map",
        "`map` as Hive and Impala write it, in groups `map`",
        [[("a", 1), ("b", None)], [], None],
        pa.map_(pa.string(), pa.int32()),
        renamed("map"),
    ),
    _shaped(
        "other_keys",
        "`map` whose keys and values have other names",
        [[("a", 1), ("b", None)], [], None],
        pa.map_(pa.string(), pa.int32()),
        renamed("entries", "k", "v"),
        {"DuckDB": "error: refused", "Sail": "error"},
    ),
    _shaped(
        "old_map",
        "`map` with old annotations (Spark's `writeLegacyFormat`)",
        [[("a", 1), ("b", None)], [], None],
        pa.map_(pa.string(), pa.int32()),
        lambda own: own.annotate(MAP_KEY_VALUE),
        {"DuckDB": "error: refused", **_NOT_IN_JAVA},
    ),
    EngineCase(
        "widened",
        "`int` files in a `bigint` table",
        {"a": _column([1], pa.int32()), "b": _column([2**40], pa.int64())},
        [(1,), (2**40,)],
    ),
    EngineCase(
        "wider_decimal",
        "`decimal(9, 2)` files in a `decimal(20, 2)` table",
        {
            "a": _column([Decimal("1.23")], pa.decimal128(9, 2)),
            "b": _column([Decimal("-12345678901.23")], pa.decimal128(20, 2)),
        },
        [(Decimal("1.23"),), (Decimal("-12345678901.23"),)],
    ),
    EngineCase(
        "spelled",
        "names that files spell in different cases",
        {"a": _column([1]), "b": {"V": pa.array([2])}},
        [(1,), (2,)],
    ),
    EngineCase(
        "named",
        "names with spaces and other letters",
        {"f": {"größe (€) v.1": pa.array([1])}},
        [(1,)],
    ),
    EngineCase(
        "extra",
        "columns of files that the table lacks, also nested ones",
        {
            "f": {"v": pa.array([1]), "q": pa.array(["x"])},
            "g": {"v": pa.array([2]), "q": pa.array([[{"w": 1}]])},
            "h": {
                "v": pa.array([3]),
                "q": pa.array([[("k", [1])]], pa.map_(pa.string(), pa.list_(pa.int64()))),
            },
        },
        [(1,), (2,), (3,)],
        columns={"v": "bigint"},
    ),
    EngineCase(
        "characters",
        "files with `#`, `?`, `*`, `[` in their names",
        {"f#a?b*[c]": _column([1])},
        [(1,)],
    ),
    EngineCase(
        "mixed",
        "`int` files in a `double` table",
        {"a": _column([1], pa.int32()), "b": _column([0.5])},
        refusal="stored as int32",
    ),
    EngineCase(
        "nanoseconds",
        "times in nanoseconds",
        {"f": _column([1], pa.timestamp("ns", tz="UTC"))},
        refusal="stored as timestamp[ns, tz=UTC]",
    ),
    EngineCase(
        "fixed",
        "bytes of fixed length",
        {"f": _column([b"ab"], pa.binary(2))},
        refusal="stored as fixed_size_binary[2]",
    ),
    EngineCase(
        "double_partition",
        "partitions of `double`",
        {"p=0.5/f": _column([1])},
        refusal="partition column 'p' is of type double",
    ),
    EngineCase(
        "inside",
        "files that hold the partition column",
        {"v=2/f": {"v": pa.array([1]), "w": pa.array([1])}},
        refusal="also holds the partition column 'v'",
    ),
    EngineCase(
        "field_ids",
        "files with field ids",
        {
            "f": pa.table(
                [pa.array([1])],
                pa.schema([pa.field("v", pa.int64(), metadata={"PARQUET:field_id": "1"})]),
            )
        },
        refusal="it has field ids",
    ),
    EngineCase(
        "old_calendar",
        "files marked as in the calendar before 1582",
        {
            "f": pa.table(
                [pa.array([date(1500, 1, 1)])],
                pa.schema([("v", pa.date32())], {"org.apache.spark.legacyDateTime": ""}),
            )
        },
        refusal="may hold dates or times in the calendar before Gregory's",
    ),
    EngineCase(
        "settled_calendar",
        "files so marked whose bounds show only later dates and times, or null",
        {
            "a": _marked(
                [date(1582, 10, 15), date(2022, 10, 24)],
                [datetime(1900, 1, 1, tzinfo=timezone.utc), None],
            ),
            "b": _marked([None], [None]),
        },
        [
            (date(1582, 10, 15), datetime(1900, 1, 1, tzinfo=timezone.utc)),
            (date(2022, 10, 24), None),
            (None, None),
        ],
    ),
    EngineCase(
        "insert_only",
        "an insert-only transactional table: writes that are merged, replaced, aborted",
        {
            "c=a%2Fb/delta_0000001_0000001_0000/000000_0": _column([1]),
            "c=a%2Fb/base_0000002/000000_0": _column([2, 3]),
            "c=a%2Fb/delta_0000003_0000003_0000/000000_0": _column([4]),
            "c=a%2Fb/delta_0000004_0000004_0000/000000_0": _column([5]),
            "c=__HIVE_DEFAULT_PARTITION__/delta_0000005_0000005_0000/000000_0": _column([6]),
            "c=x/delta_0000006_0000006_0000/000000_0": _column([7]),
        },
        [(2, "a/b"), (3, "a/b"), (4, "a/b"), (6, None)],
        transactional="insert_only",
        write_ids="d.t:6:6:6:4",
        trouble={"Sail": "error: odd characters"},
    ),
    EngineCase(
        "deleted",
        "transactional tables of which single rows are deleted",
        {},
        format="orc",
        transactional="full",
        make=lambda folder: AcidTable(folder).insert(1, 0, [("", 0, 1)]),
        refusal="its rows are deleted one by one",
    ),
    _delta(
        "delta",
        "with null partitions, odd characters, a column added later",
        lambda folder: delta_tables.partitioned(folder, _ODD),
        [
            (1, None, _DAY, 1, _ODD),
            (2, None, None, 2, None),
            (3, None, date(1500, 2, 3), None, "x"),
            (2**40, 0.5, date(2026, 11, 2), -7, "#?*"),
        ],
        Sail="error: odd characters",
    ),
    _delta(
        "delta_elsewhere",
        "whose log names files elsewhere, and values that folders lack",
        delta_tables.elsewhere,
        [(1, "a/b"), (2, "a/b"), (3, None), (4, None)],
    ),
    _delta(
        "delta_vectors",
        "with deletion vectors",
        delta_tables.with_vectors,
        [
            *((v, None) for v in (1, 3)),
            *((v, "x") for v in (1, 2, 3, 4)),
            *((v, None) for v in (1, 2, 4)),
            *((v, "x") for v in (2, 3, 4)),
            *((v, None) for v in (1, 2, 3, 4)),
        ],
        Trino="error",
    ),
    *(
        _delta(
            f"delta_mapped_by_{mode}",
            f"with column mapping by {mode}: columns renamed, dropped, added; ids in some files",
            partial(delta_tables.mapped, mode=mode),
            [(1, 101, None, 1), (2, 102, None, 2), (3, 103, "x3", None)],
        )
        for mode in ("name", "id")
    ),
    _delta(
        "delta_mapped_structs",
        "with column mapping, renamed within structs",
        delta_tables.mapped_structs,
        [({"b": 1, "a": "x"},), (None,)],
    ),
    _delta(
        "delta_mapped_otherwise",
        "with column mapping, of files with other ids",
        delta_tables.mapped_otherwise,
        refusal="has other field ids than Delta's column mapping",
    ),
    _delta(
        "delta_widened",
        "with `int` files in a `double` column",
        delta_tables.widened,
        refusal="stored as int32",
    ),
    _delta(
        "delta_ids",
        "of files with field ids",
        delta_tables.with_ids,
        refusal="it has field ids",
    ),
    _iceberg(
        "iceberg",
        "with null partitions, odd characters, columns renamed, added and widened",
        lambda folder: iceberg_tables.partitioned(folder, _ODD),
        [(1, None, _DAY, _ODD), (2, None, None, None), (2**40, "added", _DAY, "x")],
    ),
    _iceberg(
        "iceberg_positions",
        "of which files name deleted rows",
        iceberg_tables.deleted_positions,
        [(2,), (4,)],
    ),
    _iceberg(
        "iceberg_vectors",
        "with deletion vectors",
        iceberg_tables.deleted_by_vector,
        [(1,), (3,)],
        Trino="error",
    ),
    _iceberg(
        "iceberg_rolled_back",
        "rolled back to a snapshot, by a writer that keeps no log of them",
        iceberg_tables.rolled_back,
        [(1,), (2,), (3,), (4,)],
    ),
)


def matrix() -> str:
    """Return the matrix of the documents."""
    head = [
        "| what a table has | " + " | ".join(ALL_ENGINES) + " |",
        "|---" * (len(ALL_ENGINES) + 1) + "|",
    ]
    return "\n".join([*head, *map(_row, CASES)])


def _row(case: EngineCase) -> str:
    if case.refusal:
        cells = ["refused"] * len(ALL_ENGINES)
    else:
        cells = [case.trouble.get(engine, "yes") for engine in ALL_ENGINES]
    return f"| {case.words} | " + " | ".join(cells) + " |"
