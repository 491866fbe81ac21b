"""Acceleration of an application's queries: switched on and off, and asked for its reasons."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from types import TracebackType
from typing import Any
from weakref import WeakKeyDictionary

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession

from windrow_calls.coordinator import Coordinator
from windrow_calls.errors import InvalidArgumentError
from windrow_core.cards import Card, Shown, ShownList, card_of
from windrow_spark.acceleration.decisions import Decision, Decisions
from windrow_spark.acceleration.writes import Writes
from windrow_spark.compiling import compiled
from windrow_spark.errors import RelationUnavailableError
from windrow_spark.placement import require_classic
from windrow_spark.relation import java_classes
from windrow_spark.relation.callbacks import answers_in_session
from windrow_spark.relation.scans import ANSWERS

_SOURCES = (
    "AcceleratedReads.java",
    "AcceleratedWrites.java",
    "OwnWrites.java",
    "PathIndex.java",
)
_FACTORY = "windrow.AcceleratedReads$Factory"
# From Spark 4 on.
_PATHS = "PathReads.java"
_PATHS_FACTORY = "windrow.PathReads$Factory"
_switching = threading.Lock()
_factories: WeakKeyDictionary[Any, list[Any]] = WeakKeyDictionary()
_running: WeakKeyDictionary[Any, Acceleration] = WeakKeyDictionary()


class Acceleration(Shown):
    """Queries of an application that Windrow plans; a context manager, off at its end."""

    def __init__(self, spark: SparkSession, decisions: Decisions) -> None:
        self._spark = spark
        self._decisions = decisions
        self._gateway: Any = spark.sparkContext._gateway

    def off(self) -> None:
        """Leave all further queries to Spark; calling it again changes nothing."""
        with _switching:
            if _running.get(self._gateway) is self:
                del _running[self._gateway]
                _factories[self._gateway][0].answerBy(None, False)

    @property
    def is_on(self) -> bool:
        """Whether this is the acceleration that is on."""
        return _running.get(self._gateway) is self

    def reasons(self) -> dict[str, str]:
        """Return why Spark itself plans tables and paths, by their names; newest last.

        Only the newest decision about each counts, and none of those that Windrow plans.
        """
        newest: dict[str, Decision] = {}
        for decision in list(self._decisions.newest):
            newest.pop(decision.target, None)
            newest[decision.target] = decision
        return {one.target: one.reason for one in newest.values() if one.reason}

    def decisions(self) -> list[Decision]:
        """Return the newest 200 decisions, the newest last."""
        return ShownList(self._decisions.newest, "decisions")

    def explain(self, rows: DataFrame) -> dict[str, str]:
        """Return for each table or path of a query why Spark itself would plan it now.

        The query is optimized for this, and not run. The text is empty for what Windrow plans.

        Args:
            rows: The query: any DataFrame of the application.
        """
        query = rows.alias("windrow_explained")._jdf.queryExecution()
        query.optimizedPlan()
        with _switching:
            factory = _factories[self._gateway][0]
        reasons = factory.decisions(query)
        return {str(target): str(reasons[target]) for target in reasons}

    def __enter__(self) -> Acceleration:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.off()


@card_of.register
def _(acceleration: Acceleration) -> Card:
    reasons = acceleration.reasons()
    facts = [("is on", "yes" if acceleration.is_on else "no"), *reasons.items()]
    return Card("Acceleration", facts)


def accelerate(
    spark: SparkSession,
    client: Coordinator,
    tables: str | Sequence[str],
    max_staleness: int,
    wait_s: float,
    *,
    writes: bool,
) -> Acceleration:
    """Let Windrow plan unchanged queries; see `windrow.accelerate`."""
    require_classic(spark)
    if max_staleness < 0:
        raise InvalidArgumentError("max_staleness", "give a number of seconds that is not negative")
    if wait_s <= 0:
        raise InvalidArgumentError("wait_s", "give a number of seconds that is more than 0")
    patterns = [tables] if isinstance(tables, str) else list(tables)
    decisions = Decisions(spark, client, patterns, max_staleness, wait_s)
    gateway: Any = spark.sparkContext._gateway
    loader = java_classes.prepare(spark, ANSWERS)
    try:
        with _switching:
            if gateway not in _factories:
                _factories[gateway] = _new_factories(spark, loader)
            factory, *of_paths = _factories[gateway]
            command = Writes(client, decisions).command
            handlers = decisions.relation, decisions.refused, decisions.path, command
            factory.answerBy(answers_in_session(spark, *handlers), writes)
            factory.extend(spark._jsparkSession.extensions())
            for one in of_paths:
                one.extend(spark._jsparkSession)
            acceleration = _running[gateway] = Acceleration(spark, decisions)
            return acceleration
    except (Py4JError, TypeError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise RelationUnavailableError(spark.version, reason) from error


def _new_factories(spark: SparkSession, loader: Any) -> list[Any]:
    """Return the JVM's factories of our rules: of scans, and from Spark 4 on of paths."""
    sources, names = list(_SOURCES), [_FACTORY]
    if not spark.version.startswith("3."):
        sources.append(_PATHS)
        names.append(_PATHS_FACTORY)
    gateway: Any = spark.sparkContext._gateway
    classes = compiled(gateway.jvm, __package__, sources, loader)
    return [classes.loader.loadClass(name).newInstance() for name in names]
