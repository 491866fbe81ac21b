"""Any condition, join or subquery on partition columns gives Spark's rows, from no more files."""

from __future__ import annotations

import datetime as dt
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import windrow
from tests.support.laws import a_few, examples
from tests.support.queries.partition_queries import Grammar, queries, quoted
from tests.support.spark.file_scans import FileScan, file_scans
from tests.support.tables import hive
from tests.support.tables.partition_schemes import MARKS, File, Scheme, schemes, small_table
from windrow.spark import recent_scans
from windrow_spark.relation.division import Reader

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]

_ADAPTIVE = "spark.sql.adaptive.enabled"
ZONES = ("America/New_York", "UTC", "Asia/Kathmandu")
READERS: tuple[Reader, ...] = ("auto", "auto", "grouped", "native")


@dataclass(frozen=True)
class Answer:
    """The outcome of a query.

    Attributes:
        rows: The texts of its rows, sorted; None if it failed.
        scans: What its scans of the table have read.
        error: The error with which it failed.
    """

    rows: list[str] | None
    scans: Sequence[FileScan] = ()
    error: Exception | None = None

    @property
    def files(self) -> int:
        """The number of files, over all scans."""
        return sum(scan.files for scan in self.scans)


@dataclass(frozen=True)
class Sides:
    """One folder as a table of Windrow and as a table of Spark."""

    spark: SparkSession
    location: Path
    table: str
    theirs: str = "partitions_spark"
    ours: str = "partitions_windrow"
    small: str = "partitions_small"

    def spark_answer(self, query: str) -> Answer:
        """Return the answer of Spark's own table."""
        try:
            frame = self.spark.sql(query.format(t=self.theirs, small=self.small))
            rows = frame.collect()
        except (PySparkException, Py4JJavaError) as error:
            return Answer(None, error=error)
        return Answer(_texts(rows), file_scans(frame, self.location))

    def windrow_answer(self, query: str) -> Answer:
        """Return the answer of Windrow's table."""
        before = {scan.plan.plan_id for scan in recent_scans(self.table)}
        try:
            frame = self.spark.sql(query.format(t=self.ours, small=self.small))
            rows = frame.collect()
        except (PySparkException, Py4JJavaError, windrow.WindrowError) as error:
            return Answer(None, error=error)
        scans = [
            FileScan(frozenset(scan.columns), scan.plan.summary.files_planned)
            for scan in recent_scans(self.table)
            if scan.plan.plan_id not in before
        ]
        return Answer(_texts(rows), scans)

    def check(self, query: str) -> None:
        """Compare the answers of both tables to a query, and the number of files.

        Args:
            query: The query, with `{t}` in the places of the table, and `{small}` of the small one.
        """
        theirs, ours = self.spark_answer(query), self.windrow_answer(query)
        _compare(query, theirs, ours)
        # An adaptive query ends its scans, started or not, once one side of a join turns out empty.
        by_chance = not theirs.rows and self.spark.conf.get(_ADAPTIVE) == "true" and "JOIN" in query
        if theirs.rows is not None and not by_chance:
            assert ours.files <= theirs.files, (query, ours.scans, theirs.scans)


def _texts(rows: Sequence[Any]) -> list[str]:
    # 0.0 and -0.0 are one group: which of them it is named by depends on the order of rows.
    return sorted(
        repr(tuple(value + 0.0 if isinstance(value, float) else value for value in row))
        for row in rows
    )


def _compare(query: str, theirs: Answer, ours: Answer) -> None:
    if theirs.rows is None:
        # Spark evaluates conditions of partitions on all of them, and others on the rows that are
        # left, in which a value that fails may not occur.
        event(f"Spark fails, Windrow {'fails' if ours.rows is None else 'answers'}")
    else:
        assert ours.error is None, (query, ours.error)
        assert ours.rows == theirs.rows, query


@contextmanager
def _settings(spark: SparkSession, values: Mapping[str, str]) -> Iterator[None]:
    before = {name: spark.conf.get(name, None) for name in values}
    for name, value in values.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            spark.conf.unset(name) if old is None else spark.conf.set(name, old)


_numbers = itertools.count()


def _opened(
    spark: SparkSession, client: windrow.Client, folder: Path, scheme: Scheme, reader: Reader
) -> Sides:
    """Write a table, register it as a user would, and open it on both sides."""
    table = f"partitions{next(_numbers)}"
    sides = Sides(spark, folder / table, f"laws.{table}")
    if scheme.is_by_spark:
        # Spark has its own spelling of values, and its own files.
        scheme.write(folder / f"{table}_texts")
        rows = spark.read.schema(scheme.schema).parquet(str(folder / f"{table}_texts"))
        rows.write.partitionBy(*scheme.types).parquet(str(sides.location))
    else:
        scheme.write(sides.location)
    types = dict(scheme.types) if scheme.is_explicit else None
    client.register_table(sides.table, str(sides.location), partition_columns=types)
    client.refresh(sides.table)
    ours = client.create_view(spark, sides.table, sides.ours, reader=reader)
    source = spark.read.schema(scheme.schema) if scheme.is_explicit else spark.read
    theirs = source.parquet(str(sides.location))
    theirs.createOrReplaceTempView(sides.theirs)
    assert ours.dtypes == theirs.dtypes
    return sides


@st.composite
def _tables_and_conditions(draw: st.DrawFn) -> tuple[Scheme, list[str]]:
    scheme = draw(schemes())
    conditions = Grammar(scheme).conditions()
    return scheme, draw(st.lists(conditions, min_size=len(MARKS), max_size=len(MARKS)))


@examples(4, deadline=None)
@given(
    scheme_and_conditions=_tables_and_conditions(),
    ansi=st.sampled_from(["true", "false"]),
    zone=st.sampled_from(ZONES),
    reader=st.sampled_from(READERS),
)
def test_every_condition_on_partitions_keeps_sparks_rows(
    spark: SparkSession,
    client: windrow.Client,
    folder: Path,
    scheme_and_conditions: tuple[Scheme, list[str]],
    ansi: str,
    zone: str,
    reader: Reader,
) -> None:
    scheme, conditions = scheme_and_conditions
    names = ", ".join(map(quoted, scheme.types))
    parts = [
        f"SELECT {number} AS part, id, {mark}, {names} FROM {{t}} WHERE {condition}"
        for number, (mark, condition) in enumerate(zip(MARKS, conditions, strict=True))
    ]
    with _settings(spark, {"spark.sql.ansi.enabled": ansi, "spark.sql.session.timeZone": zone}):
        sides = _opened(spark, client, folder, scheme, reader)
        # One job for all.
        whole = " UNION ALL ".join(parts)
        theirs, ours = sides.spark_answer(whole), sides.windrow_answer(whole)
        if theirs.rows is None or ours.rows is None:
            for part in parts:
                sides.check(part)
            return
    assert ours.rows == theirs.rows, conditions
    ours_by_mark, theirs_by_mark = _by_mark(ours), _by_mark(theirs)
    for mark, condition in zip(MARKS, conditions, strict=True):
        assert ours_by_mark[mark] <= theirs_by_mark[mark], condition


def _by_mark(answer: Answer) -> Counter[str]:
    """Return the number of files that the scans have read for each mark."""
    counts: Counter[str] = Counter()
    for scan in answer.scans:
        (mark,) = scan.columns & set(MARKS)
        counts[mark] += scan.files
    return counts


@st.composite
def _tables_and_risks(draw: st.DrawFn) -> tuple[Scheme, list[str]]:
    scheme = draw(schemes())
    conditions = Grammar(scheme, risky=True).conditions(1)
    return scheme, draw(st.lists(conditions, min_size=5, max_size=5))


@examples(3, deadline=None)
@given(scheme_and_conditions=_tables_and_risks(), zone=st.sampled_from(ZONES))
def test_a_condition_that_fails_for_some_values_fails_or_keeps_sparks_rows(
    spark: SparkSession,
    client: windrow.Client,
    folder: Path,
    scheme_and_conditions: tuple[Scheme, list[str]],
    zone: str,
) -> None:
    scheme, conditions = scheme_and_conditions
    with _settings(spark, {"spark.sql.ansi.enabled": "true", "spark.sql.session.timeZone": zone}):
        sides = _opened(spark, client, folder, scheme, "auto")
        for condition in conditions:
            sides.check(f"SELECT * FROM {{t}} WHERE {condition}")


@st.composite
def _tables_and_queries(draw: st.DrawFn) -> tuple[Scheme, list[int | None], list[str]]:
    scheme = draw(schemes())
    places = draw(st.lists(st.none() | st.integers(0, 20), min_size=1, max_size=5))
    texts = st.lists(queries(scheme), min_size=5, max_size=5, unique=True)
    return scheme, places, draw(texts)


@examples(4, deadline=None)
@given(
    scheme_and_queries=_tables_and_queries(),
    ansi=st.sampled_from(["true", "false"]),
    adaptive=st.sampled_from(["true", "false"]),
    broadcast=st.sampled_from(["-1", "10MB"]),
    zone=st.sampled_from(ZONES),
    reader=st.sampled_from(READERS),
)
def test_joins_subqueries_and_limits_give_sparks_rows(
    spark: SparkSession,
    client: windrow.Client,
    folder: Path,
    scheme_and_queries: tuple[Scheme, list[int | None], list[str]],
    ansi: str,
    adaptive: str,
    broadcast: str,
    zone: str,
    reader: Reader,
) -> None:
    scheme, places, texts = scheme_and_queries
    values = {
        "spark.sql.ansi.enabled": ansi,
        _ADAPTIVE: adaptive,
        "spark.sql.autoBroadcastJoinThreshold": broadcast,
        "spark.sql.session.timeZone": zone,
    }
    with _settings(spark, values):
        sides = _opened(spark, client, folder, scheme, reader)
        small = folder / f"small{next(_numbers)}.parquet"
        pq.write_table(small_table(scheme, places), small)
        spark.read.parquet(str(small)).createOrReplaceTempView(sides.small)
        for query in texts:
            sides.check(query)


# --- queries that people write ----------------------------------------------

DAYS = [f"2025-07-{day}" for day in range(27, 32)] + [f"2025-08-{day:02}" for day in range(1, 11)]
MONTH = "year(ds) = 2025 AND month(ds) = 8"
MANY_DAYS = "sequence(DATE'2020-01-01', DATE'2025-08-02')"
NAMED = {
    "one day": "SELECT * FROM {t} WHERE ds = '2025-08-01'",
    "days": "SELECT * FROM {t} WHERE ds BETWEEN DATE'2025-07-31' AND DATE'2025-08-02'",
    "some days": "SELECT id FROM {t} WHERE ds IN (DATE'2025-07-28', DATE'2025-08-03') AND id % 2 = 0",
    "hour 01": "SELECT * FROM {t} WHERE hour = '01' AND ds >= '2025-08-05'",
    "never": "SELECT * FROM {t} WHERE ds = '2025-08-01' AND 1 = 0",
    "all": "SELECT count(*), sum(id) FROM {t}",
    "month": f"SELECT count(*), sum(id) FROM {{t}} WHERE {MONTH}",
    "format": "SELECT id FROM {t} WHERE date_format(ds, 'yyyy-MM') = '2025-07'",
    "text of a day": "SELECT id FROM {t} WHERE substr(cast(ds AS string), 1, 7) = '2025-07'",
    "like": "SELECT id FROM {t} WHERE ds LIKE '2025-08-0%'",
    "truncated": "SELECT id FROM {t} WHERE date_trunc('month', ds) = TIMESTAMP'2025-07-01 00:00:00'",
    "hour as a number": "SELECT id FROM {t} WHERE cast(hour AS int) = 1",
    "day of the week": "SELECT id FROM {t} WHERE dayofweek(ds) = 1 AND name LIKE 'name-1%'",
    "either": "SELECT id FROM {t} WHERE (month(ds) = 7 AND id > 3) OR (day(ds) = 9 AND id % 2 = 0)",
    "neither": f"SELECT id FROM {{t}} WHERE NOT ({MONTH} OR hour = concat('0', '1'))",
    "case": "SELECT id FROM {t} WHERE CASE WHEN hour = '00' THEN day(ds) ELSE 1 END = 5",
    "many days": f"SELECT id FROM {{t}} WHERE array_contains({MANY_DAYS}, ds)",
    "at random": f"SELECT id FROM {{t}} WHERE {MONTH} AND rand() < 2",
    "function of Python": "SELECT id FROM {t} WHERE is_third(day(ds)) AND month(ds) = 8",
    "join": "SELECT id, week FROM {t} JOIN {small} ON ds = day WHERE week = 32",
    "join of some days": "SELECT id, week FROM {small} LEFT JOIN {t} ON ds = day AND hour = '01' "
    "WHERE week = 31",
    "join of hours": "SELECT id FROM {t} JOIN {small} ON ds = day AND hour = hours WHERE week = 32",
    "semi join": "SELECT id FROM {t} LEFT SEMI JOIN {small} ON ds = day AND hour = hours AND week < 32",
    "in": "SELECT id FROM {t} WHERE ds IN (SELECT day FROM {small} WHERE week = 31)",
    "not in": "SELECT id FROM {t} WHERE ds NOT IN (SELECT day FROM {small} WHERE week > 30)",
    "exists": "SELECT id FROM {t} WHERE EXISTS (SELECT 1 FROM {small} WHERE day = ds AND week = 31)",
    "newest day": "SELECT * FROM {t} WHERE ds = (SELECT max(ds) FROM {t})",
    "newest of other days": "SELECT id FROM {t} WHERE ds = (SELECT max(day) FROM {small})",
    "self join": "SELECT a.id, b.id FROM {t} a JOIN {t} b ON a.id = b.id + 1 AND a.ds = b.ds "
    "WHERE a.ds = date_add(DATE'2025-07-31', 1)",
    "two months": f"SELECT id FROM {{t}} WHERE {MONTH} UNION ALL "
    "SELECT id FROM {t} WHERE month(ds) = 7",
    "used twice": f"WITH m AS (SELECT ds, count(*) AS n FROM {{t}} WHERE {MONTH} GROUP BY ds) "
    "SELECT a.ds, b.n FROM m a JOIN m b ON a.ds = date_add(b.ds, 1)",
    "grouping sets": f"SELECT ds, hour, count(*) FROM {{t}} WHERE {MONTH} "
    "GROUP BY GROUPING SETS ((ds), (hour), ())",
    "window": "SELECT id, rank() OVER (PARTITION BY ds ORDER BY id) FROM {t} WHERE month(ds) = 7",
    "top": f"SELECT id FROM {{t}} WHERE {MONTH} ORDER BY ds DESC, id LIMIT 5",
    "limit": f"SELECT count(*) FROM (SELECT id FROM {{t}} WHERE {MONTH} LIMIT 7)",
    "nested limits": "SELECT count(*) FROM (SELECT * FROM (SELECT * FROM {t} LIMIT 30) LIMIT 7)",
    "first and last": f"SELECT min(ds), max(ds), count(DISTINCT hour) FROM {{t}} WHERE {MONTH}",
    "names of files": "SELECT id, input_file_name() FROM {t} WHERE month(ds) = 7",
    "by name of file": "SELECT id FROM {t} WHERE input_file_name() LIKE '%2025-08-01%'",
}


@pytest.fixture(scope="module")
def days(spark: SparkSession, client: windrow.Client, folder: Path) -> Sides:
    """A table of 60 files, partitioned by day and hour, and a small one of days."""
    sides = Sides(
        spark, folder / "days", "laws.days", "days_spark", "days_windrow", small="days_small"
    )
    first = itertools.count(step=3)
    for day, hour, number in itertools.product(DAYS, ("00", "01"), range(2)):
        path = sides.location / f"ds={day}" / f"hour={hour}" / f"part-{number}.parquet"
        ids = range(start := next(first), start + 3)
        hive.write_file(path, ids)
    types = {"ds": "date", "hour": "string"}
    client.register_table(sides.table, str(sides.location), partition_columns=types)
    client.refresh(sides.table)
    schema = "id bigint, name string, ds date, hour string"
    spark.read.schema(schema).parquet(str(sides.location)).createOrReplaceTempView(sides.theirs)
    client.create_view(spark, sides.table, sides.ours)
    some = [dt.date.fromisoformat(day) for day in DAYS[3:10]]
    weeks = {
        "day": pa.array([*some, None]),
        "week": [day.isocalendar().week for day in some] + [30],
        "hours": ["00", "01", "0", "1", "01", "01", "00", "00"],
    }
    pq.write_table(pa.table(weeks), folder / "days_small.parquet")
    spark.read.parquet(str(folder / "days_small.parquet")).createOrReplaceTempView(sides.small)
    spark.udf.register("is_third", lambda day: day % 3 == 0, "boolean")
    return sides


@pytest.mark.parametrize("name", a_few(list(NAMED), 3))
def test_a_query_that_people_write_gives_sparks_rows(days: Sides, name: str) -> None:
    days.check(NAMED[name])


@pytest.mark.parametrize(
    ("name", "files"), [("month", 40), ("join", 8), ("in", 20), ("newest day", 60 + 4)]
)
def test_files_that_spark_reads_are_those_of_the_partitions_it_needs(
    days: Sides, name: str, files: int
) -> None:
    assert days.spark_answer(NAMED[name]).files == files


@pytest.mark.parametrize("condition", ["true", MONTH, "id >= 100"])
def test_a_limit_gives_as_many_rows_from_no_more_files(days: Sides, condition: str) -> None:
    whole = days.spark_answer(f"SELECT * FROM {{t}} WHERE {condition}")

    theirs = days.spark_answer(f"SELECT * FROM {{t}} WHERE {condition} LIMIT 20")
    ours = days.windrow_answer(f"SELECT * FROM {{t}} WHERE {condition} LIMIT 20")

    assert whole.rows is not None
    assert ours.rows is not None
    assert len(set(ours.rows)) == 20
    assert set(ours.rows) <= set(whole.rows)
    assert ours.files <= theirs.files


DAY_OF_OLD = "DATE'1582-10-10'"


@pytest.mark.parametrize("condition", ["= {}", "IN ({})", ">= {}", "<=> {}"])
def test_a_day_that_the_older_calendar_lacks_is_one_value(
    spark: SparkSession, client: windrow.Client, folder: Path, condition: str
) -> None:
    # In filters that Spark tells relations, it is the first day of the newer calendar.
    files = [File(("1582-10-10",), ((0, None, None, None),))]
    scheme = Scheme({"ds": "date"}, files, is_explicit=True, is_by_spark=False)
    sides = _opened(spark, client, folder, scheme, "auto")

    sides.check(f"SELECT * FROM {{t}} WHERE ds {condition.format(DAY_OF_OLD)}")


@pytest.mark.parametrize(
    "condition",
    [MONTH, "_metadata.file_name = 'part-1.parquet'", f"_metadata.file_size > 0 AND {MONTH}"],
)
def test_metadata_of_files_is_that_of_spark(
    client: windrow.Client, days: Sides, condition: str
) -> None:
    names = ("path", "name", "size", "block_start", "block_length", "modification_time")
    columns = ["id", *(f"_metadata.file_{name}" for name in names), "_metadata.row_index"]
    schema = days.spark.table(days.theirs).schema
    theirs = days.spark.read.schema(schema).parquet(str(days.location))
    ours = client.read(days.spark, days.table)

    answers = [side.where(condition).select(columns).collect() for side in (ours, theirs)]

    assert _texts(answers[0]) == _texts(answers[1])
