"""Queries of a relation keep the rows that Spark keeps, whatever their conditions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

import windrow
from tests.support.laws import is_nightly
from tests.support.servers import embedded
from windrow_calls.plans import SplitPlan
from windrow_spark.relation import scans
from windrow_tables.executor.filters import matching

pytestmark = pytest.mark.spark

# One file for each value of `id div 3`, so that each has few values of a column, or none.
ROWS = """SELECT id, id DIV 3 AS file,
CASE id % 5 WHEN 0 THEN NULL ELSE id > 20 END AS b,
IF(id % 4 = 0, NULL, CAST(id - 20 AS tinyint)) AS i8,
IF(id % 7 = 0, NULL, CAST(id - 20 AS int)) AS i,
CASE id % 6 WHEN 0 THEN NULL WHEN 1 THEN 9223372036854775807L WHEN 2 THEN 9007199254740993L
  ELSE id END AS l,
CASE id DIV 3 WHEN 0 THEN float('NaN') WHEN 1 THEN -0.0F WHEN 2 THEN 0.0F WHEN 3 THEN NULL
  ELSE CAST(id / 10 AS float) END AS f,
CASE id DIV 3 WHEN 0 THEN double('NaN') WHEN 1 THEN -0.0D WHEN 2 THEN NULL
  WHEN 3 THEN double('Infinity') WHEN 4 THEN double('-Infinity') ELSE id - 20D END AS d,
IF(id % 3 = 1, NULL, CAST(id - 20 AS decimal(38,10)) + 0.0000000001BD
  + IF(id < 6, 9999999999999999999999999999BD, 0BD)) AS big,
IF(id % 4 = 1, NULL, CAST((id - 20) / 4 AS decimal(6,2))) AS dec,
CASE id % 7 WHEN 0 THEN NULL WHEN 1 THEN '' WHEN 2 THEN concat('é', id) WHEN 3 THEN 'a%_'
  WHEN 4 THEN CAST(X'61FF62' AS string) WHEN 5 THEN concat('ab', id) ELSE '\U0001f600' END AS s,
CASE id % 4 WHEN 0 THEN NULL WHEN 1 THEN X'' WHEN 2 THEN X'00FF' ELSE unhex(hex(id)) END AS bin,
IF(id % 5 = 2, NULL, date_add(DATE '1969-12-25', CAST(id DIV 3 AS int))) AS t,
IF(id % 4 = 1, NULL, timestamp_micros((id - 20) * 1800000001)) AS z,
IF(id % 4 = 2, NULL, CAST(TIMESTAMP '2026-03-08 00:00:00' + make_interval(0,0,0,0,0,id * 10)
  AS timestamp_ntz)) AS n,
named_struct('x', id) AS st,
CAST(id % 3 AS int) AS p
FROM RANGE(42)"""

LITERALS = {
    "b": ["true", "false"],
    "i8": ["3", "-20", "127", "400", "2.5", "2.5D"],
    "i": ["3", "-20", "2147483648", "1.5", "0.0D", "float('NaN')"],
    "l": ["9007199254740992", "9223372036854775807", "7", "9007199254740993D"],
    "f": ["0.0", "-0.0F", "1.1", "1.1F", "1.1D", "float('NaN')", "2"],
    "d": ["0", "-0.0D", "double('NaN')", "double('Infinity')", "1.5", "3"],
    "big": [
        "-3.9999999999",
        "-20",
        "9999999999999999999999999980.0000000001",
        "1D",
        "0.00000000001BD",
    ],
    "dec": ["0.25", "0.255", "-5", "100000", "1.5D"],
    "s": ["''", "'é16'", "'a%_'", "'ab'", "CAST(X'61FF62' AS string)", "'\ufffd'", "'\U0001f600'"],
    "bin": ["X''", "X'00FF'", "X'01'"],
    "t": ["DATE '1970-01-01'", "DATE '1969-12-31'", "'1970-01-02'", "DATE '0001-01-01'"],
    "z": [
        "TIMESTAMP '1970-01-01 00:00:00Z'",
        "TIMESTAMP '1969-12-31 19:00:00'",
        "DATE '1970-01-01'",
        "TIMESTAMP '9999-12-31 23:59:59.999999'",
    ],
    "n": ["TIMESTAMP_NTZ '2026-03-08 02:30:00'", "TIMESTAMP '2026-03-08 03:00:00'"],
    "p": ["0", "1", "2", "7"],
}
SIGNS = ["=", "<>", "<", "<=", ">", ">=", "<=>"]


TEXTS = [
    *("s LIKE 'a%'", "s LIKE 'é%'", "s LIKE '%b%'", "s LIKE '%6'", "s LIKE 'a\\\\%%'"),
    *("startswith(s, 'a%_')", "startswith(s, '')", "startswith(s, CAST(X'61FF' AS string))"),
    *("length(s) > 2", "st IS NULL", "st.x > 20", "upper(s) = 'AB5'", "i % 2 = 0", "i = i8"),
]


def drawn(random: Random, count: int) -> list[str]:
    """Return conditions: each literal with two signs, in lists, and nested ones."""
    simple = [
        f"{column} {sign} {literal}"
        for column, literals in LITERALS.items()
        for literal in literals
        for sign in random.sample(SIGNS, 2)
    ]
    for column, literals in LITERALS.items():
        few = random.sample([*literals, "NULL"], 2)
        simple += [
            f"{column} IN ({', '.join(few)})",
            f"{column} NOT IN ({', '.join([*literals, *literals])})",
            f"{column} BETWEEN {few[0]} AND {few[1]}",
            f"{column} IS {random.choice(['', 'NOT '])}NULL",
        ]
    simple += TEXTS
    nested = list(simple)
    for _ in range(count):
        left, right = random.sample(nested, 2)
        both = f"({left} {random.choice(['AND', 'OR'])} {right})"
        nested.append(random.choice([both, f"NOT {both}", f"NOT ({left})"]))
    return nested


CONDITIONS = drawn(Random() if is_nightly() else Random(7), 40)
PLANNED_AT_ONCE = 25


@pytest.fixture(scope="module")
def views(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[windrow.Client]:
    """A client, and one folder as the views `ours` and `theirs`."""
    folder = tmp_path_factory.mktemp("relation")
    location: Path = folder / "rows"
    rows = spark.sql(ROWS).repartition(14, "file").drop("file")
    rows.write.partitionBy("p").parquet(str(location))
    with embedded.client(folder / "state", allowed_locations=[str(folder)]) as client:
        client.register_table("rows", str(location), partition_columns={"p": "int"})
        client.refresh("rows")
        # Spark's own reader loses rows to filters on text that is not UTF-8.
        client.create_view(spark, "rows", "ours", reader="grouped")
        spark.read.parquet(str(location)).createOrReplaceTempView("theirs")
        yield client


@pytest.fixture(scope="module")
def kept(spark: SparkSession, views: windrow.Client) -> list[set[int]]:
    """The ids that Spark keeps, for each condition."""
    answers = ", ".join(f"{one} AS c{number}" for number, one in enumerate(CONDITIONS))
    rows = spark.sql(f"SELECT id, {answers} FROM theirs").collect()
    return [{row[0] for row in rows if row[1 + number]} for number in range(len(CONDITIONS))]


def test_no_row_that_spark_keeps_is_lost_to_a_translated_filter(
    spark: SparkSession,
    views: windrow.Client,
    kept: list[set[int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = spark.table("theirs").toArrow()
    ids = rows["id"].to_pylist()
    translated: dict[int, list[dict[str, Any]]] = {}
    nothing = views.plan("rows", filter="id < 0")

    def recorded(
        _: Any, __: Any, ___: Any, conditions: Sequence[dict[str, Any]], *____: Any
    ) -> SplitPlan:
        (mark,) = (tree for tree in conditions if tree["op"] == "ge" and tree["column"] == "id")
        translated[-mark["value"]] = [tree for tree in conditions if tree.get("column") != "id"]
        return nothing

    monkeypatch.setattr(scans, "_plan", recorded)
    for first in range(0, len(CONDITIONS), PLANNED_AT_ONCE):
        # Each part of the union plans a scan of its own, and a mark tells which part it is.
        parts = (
            f"SELECT id FROM ours WHERE id >= {-number} AND ({condition})"
            for number, condition in enumerate(CONDITIONS[first:][:PLANNED_AT_ONCE], first)
        )
        spark.sql(" UNION ALL ".join(parts))._jdf.queryExecution().toRdd()
    # If Spark itself finds that no row can match, it plans no scan.
    for number, trees in translated.items():
        for tree in trees:
            answers = matching(tree, rows).to_pylist()
            found = {id_ for id_, answer in zip(ids, answers, strict=True) if answer}
            assert kept[number] <= found, (CONDITIONS[number], tree)
    assert sum(map(bool, translated.values())) > len(CONDITIONS) / 2


def test_every_condition_keeps_the_rows_that_spark_keeps(
    spark: SparkSession, views: windrow.Client, kept: list[set[int]]
) -> None:
    chosen = range(0, len(CONDITIONS), 12)
    # One job for all: each part of the union plans a scan of its own.
    parts = (f"SELECT {n} AS number, id FROM ours WHERE {CONDITIONS[n]}" for n in chosen)
    found = [tuple(row) for row in spark.sql(" UNION ALL ".join(parts)).collect()]

    for number in chosen:
        ids = sorted(id_ for other, id_ in found if other == number)
        assert ids == sorted(kept[number]), CONDITIONS[number]
