"""Any table of CSV, JSON lines or text has the cells that Spark's reader finds in its folder."""

from __future__ import annotations

import bz2
import gzip
import itertools
import json
import shutil
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import windrow
from tests.support.laws import examples

pytestmark = pytest.mark.usefixtures("interpreted")

# By suffix; no reader accepts content that does not begin as its suffix says.
COMPRESSED: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".deflate": zlib.compress,
}
TYPES = (
    "int",
    "bigint",
    "smallint",
    "double",
    "float",
    "decimal(8,2)",
    "string",
    "boolean",
    "date",
    "timestamp",
    "timestamp_ntz",
    "binary",
)
NESTED = ("array<int>", "struct<x:int,y:string>", "map<string,bigint>")
CELLS = (
    *("", " ", "1", "-5", "12345678901", "1.5", "1e3", "NaN", "Inf", "-Infinity", "true", "FALSE"),
    *("null", "\\N", "-", "x", " pad ", "a,b", "a;b", 'quote " inside', "back\\slash", "#note"),
    *("2026-01-02", "02/01/2026", "2026-01-02 03:04:05.678", "2026-01-02T03:04:05Z", "1582-10-10"),
    *("é", "line\nbreak", "9999999.99"),
)
MODES = st.sampled_from(
    [{}, {}, {"mode": "PERMISSIVE"}, {"mode": "DROPMALFORMED"}, {"mode": "FAILFAST"}]
)
FORMATS_OF_TIMES = st.sampled_from(
    [
        {},
        {},
        {"dateFormat": "dd/MM/yyyy"},
        {"timestampFormat": "yyyy-MM-dd"},
        {"timeZone": "Asia/Tokyo"},
    ]
)


@dataclass(frozen=True)
class Table:
    """A table to write: its format, options, columns, and the files in each folder."""

    format: str
    options: dict[str, str]
    columns: dict[str, str]
    files: list[tuple[str, bytes]]

    def write(self, location: Path) -> None:
        location.mkdir()
        for name, content in self.files:
            (location / name).parent.mkdir(exist_ok=True)
            (location / name).write_bytes(content)


@st.composite
def columns(draw: st.DrawFn, types: Sequence[str]) -> dict[str, str]:
    found = draw(st.lists(st.sampled_from(types), min_size=1, max_size=5))
    # Not in alphabetical order, as fields of CSV are found by position.
    named = dict(zip("dbeac", found, strict=False))
    if draw(st.integers(0, 3)) == 0:
        named["_corrupt_record"] = "string"
    return named


@st.composite
def files(draw: st.DrawFn, contents: st.SearchStrategy[bytes]) -> list[tuple[str, bytes]]:
    found = []
    partitioned = draw(st.booleans())
    for number in range(draw(st.integers(1, 4))):
        folder = f"ds={draw(st.sampled_from(['2026-01-01', 'x%20y', '7']))}/" if partitioned else ""
        suffix = draw(st.sampled_from([*COMPRESSED, "", ""]))
        name = f"{folder}{number}{draw(st.sampled_from(['', '.txt', '.csv']))}{suffix}"
        found.append((name, COMPRESSED[suffix](draw(contents))))
    return found


@st.composite
def csv(draw: st.DrawFn) -> Table:
    options = draw(MODES) | draw(FORMATS_OF_TIMES)
    sep = draw(st.sampled_from([",", ",", ";", "\t", "||"]))
    if sep != ",":
        options["sep"] = sep
    flags = ("header", "multiLine", "ignoreLeadingWhiteSpace", "ignoreTrailingWhiteSpace")
    options |= {name: "true" for name in flags if draw(st.booleans())}
    more = {
        "quote": ["'", ""],
        "escape": ['"'],
        "comment": ["#"],
        "nullValue": ["null", "-"],
        "emptyValue": ["EMPTY"],
        "nanValue": ["-"],
        "maxCharsPerColumn": ["8"],
        "maxColumns": ["3"],
        "enforceSchema": ["false"],
        "columnPruning": ["false"],
        "unescapedQuoteHandling": ["STOP_AT_CLOSING_QUOTE", "BACK_TO_DELIMITER"],
        "encoding": ["ISO-8859-1", "UTF-16LE"],
    }
    for name in draw(st.lists(st.sampled_from(sorted(more)), max_size=2, unique=True)):
        options[name] = draw(st.sampled_from(more[name]))
    named = draw(columns(TYPES))
    quote = options.get("quote", '"') or '"'

    @st.composite
    def contents(draw: st.DrawFn) -> bytes:
        lines = [sep.join(named)] if "header" in options and draw(st.integers(0, 4)) else []
        for _ in range(draw(st.integers(0, 5))):
            width = draw(st.sampled_from([len(named), len(named), 0, 1, 4]))
            cells = draw(st.lists(st.sampled_from(CELLS), min_size=width, max_size=width))
            quoted = draw(st.lists(st.booleans(), min_size=width, max_size=width))
            lines.append(
                sep.join(
                    quote + cell.replace(quote, quote * 2) + quote if is_quoted else cell
                    for cell, is_quoted in zip(cells, quoted, strict=True)
                )
            )
        end = draw(st.sampled_from(["\n", "\r\n"]))
        text = end.join(lines) + (end if draw(st.booleans()) else "")
        return text.encode(options.get("encoding", "utf-8"))

    return Table("csv", options, named, draw(files(contents())))


def _json_cells() -> st.SearchStrategy[str]:
    plain = st.none() | st.booleans() | st.integers(-9, 2**40) | st.sampled_from(CELLS)
    plain |= st.sampled_from([1.5, -0.0, 1e300])
    nested = st.lists(plain, max_size=2) | st.dictionaries(
        st.sampled_from("xyz"), plain, max_size=2
    )
    loose = ("'single'", "NaN", "007", "/* no */ 1", "[1,", "\x01")
    return (plain | nested).map(json.dumps) | st.sampled_from(loose)


@st.composite
def json_lines(draw: st.DrawFn) -> Table:
    options = draw(MODES) | draw(FORMATS_OF_TIMES)
    flags = (
        *("multiLine", "allowSingleQuotes", "allowComments", "allowNumericLeadingZeros"),
        *("allowNonNumericNumbers", "allowUnquotedFieldNames", "allowUnquotedControlChars"),
    )
    options |= {
        name: draw(st.sampled_from(["true", "false"])) for name in flags if draw(st.booleans())
    }
    if draw(st.integers(0, 5)) == 0:
        options |= {"encoding": "UTF-16LE", "lineSep": "\n"}
    named = draw(columns((*TYPES, *NESTED)))

    @st.composite
    def contents(draw: st.DrawFn) -> bytes:
        lines = []
        for _ in range(draw(st.integers(0, 5))):
            names = draw(st.lists(st.sampled_from([*named, "D", "other"]), max_size=5))
            lines.append(
                "{" + ", ".join(f'"{name}": {draw(_json_cells())}' for name in names) + "}"
            )
        lines += draw(st.lists(st.sampled_from(["", "bad", "[]", '[{"d": 1}]', "{"]), max_size=1))
        return "\n".join(lines).encode(options.get("encoding", "utf-8"))

    return Table("json", options, named, draw(files(contents())))


@st.composite
def text(draw: st.DrawFn) -> Table:
    more = {"wholetext": "true", "lineSep": ";", "encoding": "ISO-8859-1"}
    names = draw(st.lists(st.sampled_from(sorted(more)), max_size=2, unique=True))
    lines = st.lists(st.sampled_from([*CELLS, "\r", "\u2028", "\x00"]), max_size=6)
    contents = lines.map(lambda found: "\n".join(found).encode()) | st.binary(max_size=9)
    options = {name: more[name] for name in names}
    return Table("text", options, {"value": "string"}, draw(files(contents)))


QUERIES: dict[str, Callable[[DataFrame, str, str, str], DataFrame]] = {
    "first": lambda t, first, last, by: t.select(first),
    "last": lambda t, first, last, by: t.select(last),
    "count": lambda t, first, last, by: t.agg(F.count("*")),
    "known": lambda t, first, last, by: t.where(F.col(first).isNotNull()).select(last, first),
    "more": lambda t, first, last, by: t.where(F.col(last).cast("string") > "1").select(first),
    "groups": lambda t, first, last, by: t.groupBy(F.col(by).cast("string")).count(),
    "join": lambda t, first, last, by: (
        t.alias("a").join(t.alias("b"), F.expr(f"a.{by} <=> b.{by}")).agg(F.count("*"))
    ),
    "limit": lambda t, first, last, by: t.limit(2).agg(F.count("*")),
}


def answers(frame: DataFrame, table: Table, asked: Sequence[str]) -> DataFrame:
    """Return the results of queries and all rows, as texts, in one job."""
    # Spark refuses to read only the column of malformed rows.
    data = [name for name in table.columns if name != "_corrupt_record"]
    by = "ds" if "ds" in frame.columns else data[0]
    queries = [frame, *(QUERIES[name](frame, data[0], data[-1], by) for name in asked)]
    written = {"ignoreNullFields": "false", "timestampFormat": "yyyy-MM-dd HH:mm:ss.SSSSSS"}
    texts = [
        query.toDF(*(f"x{at}" for at in range(len(query.columns)))).select(
            F.lit(number).alias("query"), F.to_json(F.struct("*"), written).alias("cells")
        )
        for number, query in enumerate(queries)
    ]
    return reduce(DataFrame.unionAll, texts)


def outcome(
    read: Callable[[], DataFrame], table: Table, asked: Sequence[str]
) -> list[tuple[int, str]] | str:
    """Return the sorted answers, or `refused`."""
    try:
        return sorted((row.query, row.cells) for row in answers(read(), table, asked).collect())
    except Exception:
        return "refused"


@pytest.fixture(scope="module")
def check(
    spark: SparkSession, client: windrow.Client, folder: Path
) -> Iterator[Callable[[Table, Sequence[str]], None]]:
    """A function that checks that a table has Spark's cells, or that both readers refuse it."""
    numbers = itertools.count()
    refused = []

    def check(table: Table, asked: Sequence[str]) -> None:
        name = f"t{next(numbers)}"
        location = folder / name
        table.write(location)
        client.register_table(
            name,
            str(location),
            table.format,
            columns=table.columns,
            format_options=table.options,
        )
        client.refresh(name)
        schema = ", ".join(f"{column} {type_}" for column, type_ in table.columns.items())
        reader = spark.read.format(table.format).schema(schema).options(**table.options)

        found = outcome(lambda: client.read(spark, name), table, asked)

        assert found == outcome(lambda: reader.load(str(location)), table, asked)
        shutil.rmtree(location)
        refused.append(found == "refused")

    yield check
    # Refusals compare equal and prove nothing, so most tables must be read.
    assert sum(refused) < len(refused) / 2


Check = Callable[[Table, Sequence[str]], None]
questions = st.lists(st.sampled_from(sorted(QUERIES)), min_size=3, max_size=3, unique=True)


@examples(16, deadline=None)
@given(table=csv(), asked=questions)
def test_any_csv_has_the_cells_that_spark_finds(
    check: Check, table: Table, asked: list[str]
) -> None:
    check(table, asked)


@examples(12, deadline=None)
@given(table=json_lines(), asked=questions)
def test_any_json_lines_have_the_cells_that_spark_finds(
    check: Check, table: Table, asked: list[str]
) -> None:
    check(table, asked)


@examples(8, deadline=None)
@given(table=text(), asked=questions)
def test_any_text_has_the_lines_that_spark_finds(
    check: Check, table: Table, asked: list[str]
) -> None:
    check(table, asked)
