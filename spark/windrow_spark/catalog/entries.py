"""The tables that Spark's catalog has, and their partitions, read many at a time."""

from __future__ import annotations

import fnmatch
import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.functions import expr

from windrow_calls.errors import InvalidArgumentError, WindrowError
from windrow_core.files.listing import unescape
from windrow_spark.compiling import new_object
from windrow_spark.placement import require_classic

# A pattern for the database, and one for the table.
Pattern: TypeAlias = tuple[str, str]

_SOURCE, _READER = "CatalogReader.java", "windrow.CatalogReader"
_HIVE_CATALOG = "org.apache.spark.sql.hive.HiveExternalCatalog"
_TABLES_PER_CALL = 500
_compiling = threading.Lock()
_readers: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()


@dataclass(frozen=True, kw_only=True)
class CatalogEntry:
    """A table or view in the catalog.

    Attributes:
        database: Name of its database.
        name: Its name in the database.
        error: Why the catalog cannot describe it; else empty.
        kind: `MANAGED`, `EXTERNAL` or `VIEW`.
        provider: Spark's name of the format, or `hive`; None for tables that Hive made.
        schema: Spark's schema of all columns, as JSON.
        partition_columns: Their names.
        lists_partitions: Whether the catalog, rather than the folders, determines its partitions.
        location: Its folder, as Hadoop writes paths.
        serde: Class of its SerDe.
        input_format: Class of its input format.
        options: Options of the format or of the SerDe.
        properties: Properties of the table.
        bucket_count: Number of buckets; 0 if it is not bucketed.
        bucket_columns: Columns that it is bucketed by.
        sort_columns: Columns that each bucket is sorted by.
    """

    database: str
    name: str
    error: str = ""
    kind: str = ""
    provider: str | None = None
    schema: str = ""
    partition_columns: Sequence[str] = ()
    lists_partitions: bool = False
    location: str | None = None
    serde: str | None = None
    input_format: str | None = None
    options: dict[str, str] = field(default_factory=dict)
    properties: dict[str, str] = field(default_factory=dict)
    bucket_count: int = 0
    bucket_columns: Sequence[str] = ()
    sort_columns: Sequence[str] = ()

    @property
    def full_name(self) -> str:
        """The database and the name."""
        return f"{self.database}.{self.name}"


@dataclass(frozen=True, slots=True)
class CatalogPartition:
    """A partition in the catalog.

    Attributes:
        values: A text for each partition column.
        location: Its folder, as Hadoop writes paths.
        serde: Class of its SerDe.
        input_format: Class of its input format.
        options: Options of its SerDe.
    """

    values: list[str]
    location: str | None
    serde: str | None
    input_format: str | None
    options: dict[str, str]


@dataclass(eq=False)
class CatalogError(WindrowError):
    """A catalog cannot list the partitions of a table."""

    table: str
    reason: str
    message = "the catalog cannot list the partitions of {table!r}: {reason}"


class NotConstantError(Exception):
    """A text is not a constant expression of Spark's SQL."""


class SparkCatalog:
    """The catalog of a Spark session.

    Args:
        spark: A classic session; built with `enableHiveSupport()` for Hive's metastore.
    """

    def __init__(self, spark: SparkSession) -> None:
        require_classic(spark)
        self._spark = spark
        self._catalog: Any = spark._jsparkSession.sharedState().externalCatalog()
        store = self._catalog.unwrapped()
        is_hive = str(store.getClass().getName()) == _HIVE_CATALOG
        self._hive: Any = store if is_hive else None
        self._reader = _reader_of(spark)
        jvm: Any = spark.sparkContext._jvm
        self._nothing = jvm.scala.Option.apply(None)

    def entries(self, patterns: Sequence[Pattern]) -> Iterator[CatalogEntry]:
        """Yield the tables and views whose names match one of the patterns, in the order of names.

        Args:
            patterns: Patterns of databases and of tables in them; see `pattern_of`.
        """
        for database in _texts(self._catalog.listDatabases()):
            tables = [
                table
                for table in _texts(self._catalog.listTables(database))
                if matching(patterns, database, table)
            ]
            for start in range(0, len(tables), _TABLES_PER_CALL):
                names = "\n".join(tables[start : start + _TABLES_PER_CALL])
                for one in json.loads(self._reader.tables(self._catalog, database, names)):
                    yield CatalogEntry(**one)

    def described(self, jtable: Any) -> CatalogEntry:
        """Return a table of which the JVM has the entry."""
        name = jtable.identifier()
        fields = json.loads(self._reader.table(jtable))
        return CatalogEntry(database=name.database().get(), name=name.table(), **fields)

    def partitions(self, entry: CatalogEntry) -> list[CatalogPartition]:
        """Return the partitions of a table."""
        columns = "\n".join(entry.partition_columns)
        with _catalog_errors_of(entry):
            text = self._reader.partitions(self._catalog, entry.database, entry.name, columns)
        return [CatalogPartition(*one) for one in json.loads(text)]

    def partition_names(self, entry: CatalogEntry) -> set[str]:
        """Return the names of all partitions of a table, such as `ds=2026-11-01/country=SE`."""
        with _catalog_errors_of(entry):
            lines = self._names_of_partitions(entry)
        return set(lines.split("\n")) if lines else set()

    def partition_values(self, entry: CatalogEntry) -> set[tuple[str, ...]]:
        """Return the values of all partitions of a table; faster than `partitions`."""
        values: set[tuple[str, ...]] = set()
        for name in self.partition_names(entry):
            pairs = (folder.partition("=") for folder in name.split("/"))
            values.add(tuple(unescape(text) for _, _, text in pairs))
        return values

    def value_of(self, sql: str, type_: str) -> Any:
        """Return the value of a constant expression of Spark's SQL as a type.

        Whoever may define a table chooses the text, so that nothing but constants is evaluated:
        no subqueries, and no functions such as `reflect`, which runs any code.
        """
        try:
            one: Any = self._spark.range(1).select(expr(sql).cast(type_))
            cast = one._jdf.queryExecution().analyzed().expressions().apply(0)
            row = one.first() if cast.children().apply(0).foldable() else None
        except PySparkException as error:
            raise NotConstantError(str(error).partition("\n")[0]) from error
        if row is None:
            raise NotConstantError("it is not constant")
        return row[0]

    def _names_of_partitions(self, entry: CatalogEntry) -> str:
        if self._hive is None:
            names = self._catalog.listPartitionNames(entry.database, entry.name, self._nothing)
            return str(names.mkString("\n"))
        return str(self._reader.partitionNames(self._hive, entry.database, entry.name))

    def partition_with_other_columns(self, entry: CatalogEntry) -> list[str] | None:
        """Return the values of a partition whose columns in Hive differ from its table's."""
        if self._hive is None:
            return None
        with _catalog_errors_of(entry):
            values = self._reader.withOtherColumns(self._hive, entry.database, entry.name)
        return None if values is None else str(values).split("\n")


@contextmanager
def _catalog_errors_of(entry: CatalogEntry) -> Iterator[None]:
    """Turn the catalog's errors about a table into an error that names it."""
    try:
        yield
    except (Py4JJavaError, PySparkException) as error:
        lines = str(error).strip().splitlines()
        # The first line of a Java error names only the call that failed.
        reason = next((line for line in lines if line.startswith(": ")), lines[0])
        raise CatalogError(entry.full_name, reason.removeprefix(": ")[:500]) from error


def matching(patterns: Sequence[Pattern], database: str, table: str) -> bool:
    """Return whether a table's name matches one of the patterns."""
    return any(
        fnmatch.fnmatchcase(database.lower(), one) and fnmatch.fnmatchcase(table.lower(), other)
        for one, other in patterns
    )


def pattern_of(text: str) -> Pattern:
    """Return a pattern such as `sales.*` or `*.events_2*`; case does not matter."""
    database, dot, table = text.lower().partition(".")
    if not (database and dot and table):
        raise InvalidArgumentError(
            "tables", f"{text!r} does not say which database: write 'sales.events' or 'sales.*'"
        )
    return database, table


def _texts(names: Any) -> list[str]:
    text = str(names.mkString("\n"))
    return sorted(text.split("\n")) if text else []


def _reader_of(spark: SparkSession) -> Any:
    gateway: Any = spark.sparkContext._gateway
    with _compiling:
        if gateway not in _readers:
            parent = gateway.jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader()
            _readers[gateway] = new_object(gateway.jvm, __package__ or "", _SOURCE, parent, _READER)
        return _readers[gateway]
