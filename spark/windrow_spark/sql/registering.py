"""The catalog `windrow` of Spark sessions, and the tables that its queries open."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession

from windrow_calls.coordinator import Coordinator
from windrow_calls.errors import InvalidArgumentError
from windrow_spark.errors import RelationUnavailableError
from windrow_spark.relation.source import named_class
from windrow_spark.sql.answers import DETAILS, OPTION, Answers, Clients
from windrow_spark.sql.procedures import Procedure

_SOURCES = (
    "Catalog.java",
    "CatalogedTable.java",
    "CreatedTable.java",
    "ErasableTable.java",
    "RefusedStatements.java",
    "TargetTable.java",
)
# From Spark 4 on.
_PROCEDURES = "Procedures.java"
_CLASS = "windrow.Catalog"
# The word of `Catalog.java` for the class that it extends.
PARENT = "PARENT"
_SETTING = "spark.sql.catalog.windrow"
_MOST_TABLES = 64
# Spark passes on what it has already answered.
_TIME_TRAVEL = {"versionasof", "timestampasof"}
# Spark adds the location of the catalog's table.
_LOCATION = "path"


def register_catalog(
    spark: SparkSession, clients: Clients, procedures: Sequence[Procedure]
) -> None:
    """Let all catalogs of class `windrow.Catalog` answer, and make `windrow` one of them.

    Args:
        spark: A classic session; sessions that it makes from now on have the catalog, too.
        clients: Returns the client of a catalog.
        procedures: What `CALL` can do.
    """
    sources, words = list(_SOURCES), {PARENT: "Object"}
    if not spark.version.startswith("3."):
        sources.append(_PROCEDURES)
        words[PARENT] = _PROCEDURES.removesuffix(".java")
    try:
        catalog = named_class(spark, __package__, sources, _CLASS, words).newInstance()
        answers = Answers(clients, procedures).answering(spark)
        catalog.answerBy(answers, spark._jsparkSession.extensions())
    except (Py4JError, TypeError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise RelationUnavailableError(spark.version, reason) from error
    settings = spark._jsc.sc().conf()
    if spark.conf.get(_SETTING, None) is None:
        spark.conf.set(_SETTING, _CLASS)
        settings.set(_SETTING, _CLASS)


@dataclass(frozen=True, slots=True)
class CatalogedRead:
    """What a query of a catalog reads.

    Attributes:
        catalog: Name of the catalog.
        coordinator: URL of the catalog's coordinator; None for the default one.
        table: Name of the table.
        created_at: When it was registered.
        snapshot_id: Its snapshot.
        at_snapshot: Whether the query named the snapshot, rather than taking the current one.
    """

    catalog: str
    coordinator: str | None
    table: str
    created_at: str
    snapshot_id: int
    at_snapshot: bool


def cataloged_read(options: Mapping[str, str]) -> CatalogedRead | None:
    """Return what the options of a read name if they are those of a catalog; None otherwise.

    Raises:
        InvalidArgumentError: The query has options of its own.
    """
    if OPTION not in options:
        return None
    others = sorted({name.lower() for name in options_of_query(options)} - {_LOCATION})
    if json.loads(options[DETAILS])["pinned"]:
        others = [name for name in others if name not in _TIME_TRAVEL]
    if others:
        remedy = (
            "this Spark does not apply it: write VERSION AS OF or TIMESTAMP AS OF in SQL"
            if others[0] in _TIME_TRAVEL
            else f"SET spark.windrow.{others[0]} for options of plans, or use client.read"
        )
        raise InvalidArgumentError(
            others[0], f"tables of a catalog take no option {others[0]!r}: {remedy}"
        )
    return CatalogedRead(**json.loads(options[OPTION]))


def options_of_query(options: Mapping[str, str]) -> dict[str, str]:
    """Return options without those that a catalog gives its table, but with its location."""
    own = {OPTION, DETAILS}
    if OPTION in options:
        own |= {name.lower() for name in json.loads(options[DETAILS])["options"]}
    return {name: text for name, text in options.items() if name.lower() not in own}


class OpenTables:
    """The tables that queries of catalogs have opened last: each reads one snapshot for good."""

    def __init__(self) -> None:
        self._tables: OrderedDict[Any, DataFrame] = OrderedDict()
        self._lock = threading.Lock()

    def table(
        self, key: tuple[SparkSession, Coordinator, CatalogedRead], read: Callable[[], DataFrame]
    ) -> DataFrame:
        """Return a table, which `read` opens unless it is still open.

        Args:
            key: The session, the client and what is read.
            read: Reads it.
        """
        with self._lock:
            if key in self._tables:
                self._tables.move_to_end(key)
                return self._tables[key]
        rows = read()
        with self._lock:
            self._tables[key] = rows
            if len(self._tables) > _MOST_TABLES:
                self._tables.popitem(last=False)
        return rows
