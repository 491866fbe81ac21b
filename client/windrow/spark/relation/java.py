"""The few Java classes of a relation: compiled once in the driver's JVM, called by Spark."""

from __future__ import annotations

import threading
import zipfile
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from windrow.spark.errors import HybridUnavailableError, RelationUnavailableError
from windrow.spark.relation.callbacks import Answering, accept_calls

# What Python's scan gives back to Spark: the JVM's rows, or why there are none.
Answer = Callable[[str, str], Any]

_SOURCE = "WindrowRelation.java"
_FACTORY = "windrow.WindrowRelation$Factory"
_ROWS = "windrow.PackedRows"
_HYBRID_SOURCE = "WindrowHybrid.java"
_HYBRID_FACTORY = "windrow.WindrowHybrid$Factory"
_SEQ, _IMMUTABLE_SEQ = "scala.collection.Seq", "scala.collection.immutable.Seq"
_compiling = threading.Lock()
_factories: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
_hybrids: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
_travellers: WeakKeyDictionary[Any, dict[str, tuple[Any, Any]]] = WeakKeyDictionary()
_supplied: WeakKeyDictionary[SparkContext, set[str]] = WeakKeyDictionary()


def relation(
    spark: SparkSession,
    schema: StructType,
    size_bytes: int,
    label: str,
    pinned: str,
    answer: Answer,
) -> DataFrame:
    """Return a relation as a DataFrame; `answer` is called whenever a query scans it.

    Args:
        spark: A classic session.
        schema: All of its columns.
        size_bytes: What Spark's planner takes for its size.
        label: What Spark's plans call it.
        pinned: Says what is read; handed to `answer` with each scan. Relations with the same text
            are equal.
        answer: Takes `pinned` and a scan (JSON: `columns`, `filters`), and returns the JVM's RDD of
            internal rows, or a text that says why there is none. The first one given in a process
            answers for all.

    Raises:
        RelationUnavailableError: This Spark lacks what a relation is made of.
    """
    try:
        factory = _factory(spark, answer)
        made = factory.relation(spark._jsparkSession, schema.json(), size_bytes, label, pinned)
        return DataFrame(spark._jsparkSession.baseRelationToDataFrame(made), spark)
    # A class that is missing is a package to py4j, which cannot be called.
    except (Py4JError, TypeError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise RelationUnavailableError(spark.version, reason) from error


def hybrid(spark: SparkSession) -> Any:
    """Return the JVM's `WindrowHybrid.Factory`, for a session with relations.

    Raises:
        HybridUnavailableError: This Spark lacks what it needs.
    """
    gateway: Any = spark.sparkContext._gateway
    try:
        with _compiling:
            format_ = _travelling(spark, "PlannedFormat.java")
            if gateway not in _hybrids:
                compiled = _compiled(gateway.jvm, _HYBRID_SOURCE, format_)
                _hybrids[gateway] = (
                    compiled.getClassLoader().loadClass(_HYBRID_FACTORY).newInstance()
                )
            return _hybrids[gateway]
    except (Py4JError, TypeError) as error:
        raise HybridUnavailableError(spark.version, str(error).partition("\n")[0]) from error


def unpacked(spark: SparkSession, batches: Any, columns: StructType) -> Any:
    """Return the rows of packed batches as the JVM's RDD, for a session with relations.

    Args:
        spark: A classic session.
        batches: The JVM's RDD of what `packing.py` packs.
        columns: Theirs.

    Raises:
        RelationUnavailableError: This Spark lacks what it needs.
    """
    try:
        with _compiling:
            rows = _travelling(spark, "PackedRows.java").loadClass(_ROWS).newInstance()
        return rows.unpacked(batches, columns.json())
    except (Py4JError, TypeError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise RelationUnavailableError(spark.version, reason) from error


def _travelling(spark: SparkSession, source: str) -> Any:
    """Return the class loader of classes that executors meet in tasks, and are given."""
    context = spark.sparkContext
    gateway: Any = context._gateway
    known = _travellers.setdefault(gateway, {})
    if source not in known:
        compiled = _compiled(gateway.jvm, source, _factories[gateway].getClass().getClassLoader())
        known[source] = compiled.getClassLoader(), compiled.getBytecodes()
    loader, classes = known[source]
    supplied = _supplied.setdefault(context, set())
    if source not in supplied:
        jar = Path(context._temp_dir) / f"windrow-{Path(source).stem}.jar"
        with zipfile.ZipFile(jar, "w") as archive:
            for name in classes:
                archive.writestr(f"{name.replace('.', '/')}.class", bytes(classes[name]))
        # For as long as the application runs.
        context._jsc.sc().addJar(str(jar))
        supplied.add(source)
    return loader


def _factory(spark: SparkSession, answer: Answer) -> Any:
    gateway: Any = spark.sparkContext._gateway
    with _compiling:
        if gateway not in _factories:
            accept_calls(gateway)
            parent = gateway.jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader()
            compiled = _compiled(gateway.jvm, _SOURCE, parent)
            factory = compiled.getClassLoader().loadClass(_FACTORY).newInstance()
            factory.answerBy(Answering(answer))
            _factories[gateway] = factory
        return _factories[gateway]


def _compiled(jvm: Any, source: str, parent: Any) -> Any:
    """Return the compiler that Spark ships, after it has compiled some of our classes."""
    text = resources.files(__package__).joinpath(source).read_text(encoding="utf-8")
    scala = str(jvm.scala.util.Properties.versionNumberString())
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(parent)
    # What Scala calls a Seq, and therefore the JVM's name of it, depends on its version.
    compiler.cook(text.replace("SEQ", _SEQ if scala.startswith("2.12") else _IMMUTABLE_SEQ))
    return compiler
