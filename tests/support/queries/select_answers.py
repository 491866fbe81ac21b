"""Random SELECTs on tables of Windrow and of Spark, and what differs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession

import windrow
from tests.support.queries.choices import Choices, simplest
from tests.support.queries.selects import Select, select
from tests.support.tables import select_tables
from tests.support.tables.packs import pack_some, packs_for_few_files
from tests.support.tables.select_tables import Kept
from windrow.spark import recent_scans
from windrow_spark.relation.division import Reader

# How a query gets at the tables.
WAYS = ("view", "catalog", "read", "accelerate")
READERS: Sequence[Reader] = ("auto", "auto", "grouped", "native")


class Way(NamedTuple):
    """How a query gets at the tables, and which reader reads their files."""

    kind: str
    reader: Reader = "auto"


_PLAIN = Way("plain")
_PER_SETTINGS = 25
# What sessions set; each value as often as it is named.
SETTINGS: Mapping[str, Sequence[str]] = {
    "spark.sql.ansi.enabled": ("true", "false"),
    "spark.sql.session.timeZone": ("America/New_York", "UTC", "Asia/Kathmandu"),
    "spark.sql.adaptive.enabled": ("true", "false"),
    "spark.sql.autoBroadcastJoinThreshold": ("10MB", "-1"),
    "spark.sql.shuffle.partitions": ("1", "2"),
    "spark.sql.cbo.enabled": ("false", "false", "true"),
    "spark.sql.optimizer.dynamicPartitionPruning.reuseBroadcastOnly": ("true", "false"),
    "spark.sql.optimizer.singleTaskExecution.enabled": ("false", "true"),
    "spark.windrow.inventory_counts": ("false", "false", "true"),
    "spark.windrow.packs": ("true", "false", "true"),
    "spark.windrow.figures": ("true", "false"),
}
_ACCELERATE = "spark.windrow.accelerate"
_ACCELERATION = {"plain": {_ACCELERATE: "false"}, "accelerate": {_ACCELERATE: "true"}}
_PUSHDOWNS = ("spark.sql.parquet.filterPushdown", "spark.sql.orc.filterPushdown")
_EXCLUDED_RULES = "spark.sql.optimizer.excludedRules"
_SORT_REMOVAL = "org.apache.spark.sql.catalyst.optimizer.EliminateSorts"
_OF_SPARKS_READER = "cannot be read by Spark's own reader"
# Spark pushes the condition of dynamic pruning below a union, and tasks cannot evaluate it.
_UNFINISHED_PRUNING = "dynamicpruning"
_WITHOUT_PRUNING = {"spark.sql.optimizer.dynamicPartitionPruning.enabled": "false"}
_OBJECT = re.compile(r"\bo\d+\b")
_CLASS = re.compile(r"\[([A-Z][A-Z0-9_.]+)\]")


@dataclass
class Counts:
    """The outcomes of queries.

    Attributes:
        queries: Number of queries.
        alike: Those with the same rows.
        empty: Those among them without a row.
        refusals: Those that Spark refuses to analyze, by its reason.
        failed: Those that fail on both sides, by the error.
        ways: Queries by the way to get at tables.
        scans: Scans that Windrow planned.
        with_scans: Queries with such a scan, by the way to get at tables.
        features: How often each feature was used.
        differing: Those that differ.
    """

    queries: int = 0
    alike: int = 0
    empty: int = 0
    scans: int = 0
    refusals: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    ways: Counter[str] = field(default_factory=Counter)
    with_scans: Counter[str] = field(default_factory=Counter)
    features: Counter[str] = field(default_factory=Counter)
    differing: int = 0


@dataclass(frozen=True)
class Answer:
    """The outcome of a query: the texts of its rows, or its error."""

    rows: Sequence[str] | None = None
    error: str = ""
    is_refusal: bool = False
    message: str = ""


def is_odd(number: int | None) -> bool | None:
    """Return whether a number is odd: the function of Python in queries."""
    return None if number is None else number % 2 == 1


class Site:
    """The tables of one seed, opened in every way."""

    def __init__(
        self, spark: SparkSession, client: windrow.Client, folder: Path, seed: str
    ) -> None:
        """Write and register the tables of a seed.

        Args:
            spark: A session with the catalog of Windrow.
            client: Plans the tables.
            folder: Where the tables are made.
            seed: What they depend on.
        """
        self.seed = seed
        self._spark = spark
        self._client = client
        self._schema = f"s{seed}"
        self._views: set[str] = set()
        # Older releases refuse to read narrower types as wider ones.
        has_narrow_files = not spark.version.startswith("3.")
        self.tables = select_tables.write(
            folder / self._schema, seed, has_narrow_files=has_narrow_files
        )
        for name, table in self.tables.tables.items():
            self._register(name, table)
        # Tables of this size have too few files for packs by themselves.
        pack_some(client, *(f"{self._schema}.{name}" for name in self.tables.tables))
        for name, table in self.tables.tables.items():
            for kind in ("plain", "accelerate"):
                with settings(spark, _ACCELERATION[kind]):
                    self._spark_rows(name, table).createOrReplaceTempView(f"{kind}_{name}")

    def _register(self, name: str, table: Kept) -> None:
        self._client.register_table(
            f"{self._schema}.{name}",
            str(self.tables.folder / name),
            table.format,
            columns=table.types,
            partition_columns=table.partition or None,
            format_options=table.options or None,
        )
        self._client.refresh(f"{self._schema}.{name}")

    def _spark_rows(self, name: str, table: Kept) -> DataFrame:
        schema = self._client.read(self._spark, f"{self._schema}.{name}").schema
        reader = self._spark.read.schema(schema).options(**table.options)
        format_ = "parquet" if table.format == "delta" else table.format
        return reader.format(format_).load(str(self.tables.folder / name))

    def _reader(self, way: Way, name: str) -> Reader:
        return "auto" if self.tables.tables[name].format == "csv" else way.reader

    def _name(self, way: Way, name: str) -> str:
        kind, reader = way.kind, self._reader(way, name)
        if kind == "catalog":
            return f"windrow.{self._schema}.{name}"
        view = f"{kind}_{name}" if kind in _ACCELERATION else f"{kind}_{reader}_{name}"
        if kind == "view" and view not in self._views:
            table = f"{self._schema}.{name}"
            self._client.create_view(self._spark, table, view, reader=reader)
            self._views.add(view)
        return view

    def frame(self, text: str, way: Way) -> DataFrame:
        """Return a query of the tables as a DataFrame."""
        names = [name for name in self.tables.tables if f"{{{name}}}" in text]
        if way.kind == "read":
            frames = {
                name: self._client.read(
                    self._spark, f"{self._schema}.{name}", reader=self._reader(way, name)
                )
                for name in names
            }
            return self._spark.sql(text, **frames)
        places = {name: self._name(way, name) for name in names}
        return self._spark.sql(text.format(**places))

    def answer(self, text: str, way: Way) -> Answer:
        """Return the answer to a query."""
        with settings(self._spark, _ACCELERATION.get(way.kind, {})):
            try:
                rows = self.frame(text, way).collect()
            except (PySparkException, Py4JJavaError, windrow.WindrowError) as error:
                return _failed(error)
        return Answer([repr(tuple(row)) for row in rows])

    def compare(self, select: Select, way: Way) -> tuple[Answer, str]:
        """Return Spark's answer to a query, and what differs in Windrow's; empty if nothing."""
        text = select.without_limit or select.text
        theirs = self.answer(text, _PLAIN)
        ours = self.answer(select.text, way)
        if theirs.error.startswith("FAILED_READ_FILE") or "OrcFilters" in theirs.message:
            # Spark cannot give its reader of ORC a condition that compares with null, which is an
            # error for Windrow too where it leaves a file to that reader.
            if _OF_SPARKS_READER in ours.message:
                return theirs, ""
            with settings(self._spark, dict.fromkeys(_PUSHDOWNS, "false")):
                theirs = self.answer(text, _PLAIN)
        if _UNFINISHED_PRUNING in theirs.message:
            with settings(self._spark, _WITHOUT_PRUNING):
                theirs = self.answer(text, _PLAIN)
        difference = _difference(select, theirs, ours)
        # Spark moves a limit over the join that a correlated subquery in the outputs becomes, and
        # then removes the sort below that join, so that any rows are the first.
        with_order = {_EXCLUDED_RULES: _SORT_REMOVAL}
        if difference and self._sorts(text, {}) < self._sorts(text, with_order):
            with settings(self._spark, with_order):
                theirs = self.answer(text, _PLAIN)
                difference = _difference(select, theirs, self.answer(select.text, way))
        return theirs, difference

    def _sorts(self, text: str, values: Mapping[str, str]) -> int:
        """Return how often Spark sorts in a query of its own tables."""
        with settings(self._spark, {**_ACCELERATION["plain"], **values}):
            try:
                plan = self.frame(text, _PLAIN)._jdf.queryExecution().optimizedPlan()
                return str(plan.toString()).count("Sort [")
            except (PySparkException, Py4JJavaError):
                return 0


def _failed(error: Exception) -> Answer:
    text = str(error)
    match = _CLASS.search(text)
    # Numbers of objects differ from call to call.
    name = match.group(1) if match else f"{type(error).__name__}: {_OBJECT.sub('…', text)[:200]}"
    return Answer(error=name, is_refusal=isinstance(error, AnalysisException), message=text)


def _difference(select: Select, theirs: Answer, ours: Answer) -> str:
    if theirs.rows is None or ours.rows is None:
        if theirs.error == ours.error:
            return ""
        return f"Spark: {theirs.message[:1500] or 'rows'}; Windrow: {ours.message[:1500] or 'rows'}"
    if select.limit is not None:
        count = max(0, min(select.limit, len(theirs.rows) - select.offset))
        if len(ours.rows) != count:
            return f"{len(ours.rows)} rows of {count}, out of {len(theirs.rows)}"
        more = Counter(ours.rows) - Counter(theirs.rows)
        return f"rows that are not Spark's: {more}" if more else ""
    if select.ordered:
        return "" if ours.rows == theirs.rows else f"Spark: {theirs.rows}; Windrow: {ours.rows}"
    one, other = Counter(theirs.rows), Counter(ours.rows)
    return "" if one == other else f"missing: {one - other}; not Spark's: {other - one}"


@contextmanager
def opened(spark: SparkSession, client: windrow.Client, folder: Path, seed: str) -> Iterator[Site]:
    """Make the tables of a seed, and give a session all ways to get at them while this is open."""
    windrow.register(spark, client)
    spark.udf.register("is_odd", is_odd, "boolean")
    site = Site(spark, client, folder, seed)
    # Acceleration notices tables that are registered later only after a while.
    with (
        packs_for_few_files(),
        windrow.accelerate(spark, client, max_staleness=86_400, wait_s=120),
    ):
        yield site


@contextmanager
def settings(spark: SparkSession, values: Mapping[str, str]) -> Iterator[None]:
    """Set values in a session, for as long as this is open."""
    before = {name: spark.conf.get(name, None) for name in values}
    for name, value in values.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            spark.conf.unset(name) if old is None else spark.conf.set(name, old)


def drawn_settings(site: Site, number: int) -> Mapping[str, str]:
    """Return the settings for a query and its neighbours."""
    choices = Choices(f"{site.seed}/settings/{number // _PER_SETTINGS}")
    values = {name: choices.one_of(some) for name, some in SETTINGS.items()}
    # Where files have bounds of floats, Spark's reader would skip NaN and -0.0 by them.
    pushdown = "false" if site.tables.has_float_statistics else "true"
    return values | dict.fromkeys(_PUSHDOWNS, pushdown)


def ask(site: Site, number: int, counts: Counts) -> str:
    """Ask a query of a site in the session's settings, and count its outcome.

    Returns:
        What differs; empty if nothing does.
    """
    choices = Choices(f"{site.seed}/{number}")
    way, select = _drawn(site, choices)
    before = _scans()
    theirs, difference = site.compare(select, way)
    scans = len(_scans() - before)
    counts.queries += 1
    counts.features.update(select.features.keys())
    counts.ways[way.kind] += 1
    counts.scans += scans
    counts.with_scans[way.kind] += scans > 0
    if difference:
        counts.differing += 1
        return (
            f"seed {site.seed}, number {number}: {way.kind} {way.reader}, "
            f"{dict(drawn_settings(site, number))}\n  {select.text}\n  {difference[:3000]}"
        )
    if theirs.rows is not None:
        counts.alike += 1
        counts.empty += not theirs.rows
    else:
        (counts.refusals if theirs.is_refusal else counts.failed)[theirs.error] += 1
    return ""


def simplified(site: Site, number: int, attempts: int) -> str:
    """Return a simpler query that differs, too, and how."""

    def again(numbers: Sequence[int]) -> tuple[Way, Select, str]:
        way, select = _drawn(site, Choices(beginning=numbers))
        return way, select, site.compare(select, way)[1]

    choices = Choices(f"{site.seed}/{number}")
    _drawn(site, choices)
    numbers = simplest(choices.taken, lambda some: bool(again(some)[2]), attempts)
    way, select, difference = again(numbers)
    return f"  simplest: {way.kind} {way.reader}: {select.text}\n  {difference[:3000]}"


def _drawn(site: Site, choices: Choices) -> tuple[Way, Select]:
    way = Way(choices.one_of(WAYS), choices.one_of(READERS))
    return way, select(choices, site.tables.tables, site.tables.literals)


def _scans() -> set[str]:
    return {scan.plan.plan_id for scan in recent_scans()}
