"""The format `windrow`: tables opened by Spark itself, in SQL too."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.sql import DataFrame, SparkSession

from windrow_calls.errors import InvalidArgumentError
from windrow_spark.compiling import compiled
from windrow_spark.errors import RelationUnavailableError
from windrow_spark.placement import require_classic
from windrow_spark.relation import requests
from windrow_spark.relation.callbacks import Answering, accept_calls, answers_in_session

# Takes the batches of a stream: the JVM's `TableSink` and the stream's options become a function of
# a batch's number and the JVM's rows.
Sinks = Callable[[Any, Mapping[str, str]], Callable[[int, Any], None]]
# Opens the table that the options of a stream name: answers what `TableStream.java` asks.
Streams = Callable[[SparkSession, Mapping[str, str]], Answering]
# Opens, in a session, the table that the options of a reader or of `CREATE VIEW` name.
Opener = Callable[[SparkSession, Mapping[str, str]], DataFrame]

# Writes rows to the table that the options of a writer name, and returns the table; takes the name
# of Spark's `SaveMode`.
Writer = Callable[[SparkSession, Mapping[str, str], str, DataFrame], DataFrame]

_SOURCES = ("DefaultSource.java", "TableSink.java", "TableStream.java")
_CLASS = "windrow.DefaultSource"
_compiling = threading.Lock()
_NO_WORDS: Mapping[str, str] = {}


def register_format(
    spark: SparkSession, opener: Opener, sinks: Sinks, streams: Streams, writer: Writer
) -> None:
    """Register the format `windrow` for all sessions of a driver; the last opener is used."""
    require_classic(spark)

    def read(request: requests.Read, session: SparkSession) -> Any:
        return _relation_of(opener(session, request.options))

    def sink(request: requests.Sink, session: SparkSession, jsink: Any) -> Answering:
        add = sinks(jsink, request.options)

        def take(request: requests.Add, session: SparkSession, jrows: Any) -> None:
            add(request.batch, jrows)

        return answers_in_session(spark, take)

    def stream(request: requests.Stream, session: SparkSession) -> Answering:
        return streams(session, request.options)

    def save(request: requests.Save, session: SparkSession, jrows: Any) -> Any:
        rows = DataFrame(jrows, session)
        return _relation_of(writer(session, request.options, request.mode, rows))

    try:
        named_class(spark, __package__, _SOURCES, _CLASS).newInstance().answerBy(
            answers_in_session(spark, read, sink, stream, save)
        )
    except (Py4JError, TypeError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise RelationUnavailableError(spark.version, reason) from error


def _relation_of(rows: DataFrame) -> Any:
    plan = rows._jdf.queryExecution().analyzed()
    if plan.getClass().getSimpleName() != "LogicalRelation":
        raise InvalidArgumentError(
            "columns", "this table is read whole here: leave `columns` out, and select in the query"
        )
    return plan.relation()


def named_class(
    spark: SparkSession,
    package: str,
    sources: Sequence[str],
    name: str,
    words: Mapping[str, str] = _NO_WORDS,
) -> Any:
    """Return a class of ours that Spark finds by its name; the first call compiles it.

    Args:
        spark: A classic session.
        package: The Python package that contains the files.
        sources: The files of the class and of those that it uses.
        name: The name of the class.
        words: Replacements for words of the files.
    """
    gateway: Any = spark.sparkContext._gateway
    accept_calls(gateway)
    loader = gateway.jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader()
    with _compiling:
        try:
            return loader.loadClass(name)
        except Py4JJavaError:
            classes = compiled(gateway.jvm, package, sources, loader, words)
        # Spark looks for classes among its jars; the folder is not needed once they are loaded.
        with tempfile.TemporaryDirectory() as folder:
            for class_, code in classes.bytecodes.items():
                file = Path(folder, *class_.split(".")).with_suffix(".class")
                file.parent.mkdir(exist_ok=True)
                file.write_bytes(code)
            loader.addURL(gateway.jvm.java.io.File(folder).toURI().toURL())
            for class_ in classes.bytecodes:
                loader.loadClass(class_)
            return loader.loadClass(name)
