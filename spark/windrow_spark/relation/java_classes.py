"""The few Java classes of a relation: compiled once in the driver's JVM, called by Spark."""

from __future__ import annotations

import threading
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from windrow_spark.compiling import compiled, new_object
from windrow_spark.errors import (
    FormatUnavailableError,
    HybridUnavailableError,
    RelationUnavailableError,
)
from windrow_spark.relation.callbacks import Answering, accept_calls

# Answers a scan of Spark's with the JVM's rows, or with a text that says why there are none.
Answer = Callable[[str, str], Any]

_SOURCE = "WindrowRelation.java"
_FACTORY = "windrow.WindrowRelation$Factory"
_ROWS = "windrow.PackedRows"
_HYBRID_SOURCE = "WindrowHybrid.java"
_HYBRID_FACTORY = "windrow.WindrowHybrid$Factory"
_NAMES_SOURCE = "FileNames.java"
_NAMES = "windrow.FileNames"
# The classes with which Spark itself reads each format.
_READERS = {
    "parquet": "org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat",
    "orc": "org.apache.spark.sql.execution.datasources.orc.OrcFileFormat",
    "avro": "org.apache.spark.sql.avro.AvroFileFormat",
    "csv": "org.apache.spark.sql.execution.datasources.csv.CSVFileFormat",
    "json": "org.apache.spark.sql.execution.datasources.json.JsonFileFormat",
    "text": "org.apache.spark.sql.execution.datasources.text.TextFileFormat",
}
_HIVE_TEXT = "windrow.HiveText"
_NO_WORDS: Mapping[str, str] = {}
_compiling = threading.Lock()
_factories: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
_hybrids: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
_rules: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
_shipped_classes: WeakKeyDictionary[Any, dict[str, tuple[Any, Any]]] = WeakKeyDictionary()
_supplies: WeakKeyDictionary[SparkContext, set[str]] = WeakKeyDictionary()


def relation(
    spark: SparkSession,
    schema: StructType,
    size_bytes: int,
    label: str,
    text: str,
    answer: Answer,
) -> DataFrame:
    """Return a relation as a DataFrame; `answer` is called whenever a query scans it.

    Args:
        spark: A classic session.
        schema: All of its columns.
        size_bytes: Its size for Spark's planner.
        label: Its name in Spark's plans.
        text: Text that says what is read, passed to `answer` with each scan. Relations with the
            same text are equal.
        answer: Takes `text` and a scan (JSON: `columns`, `filters`), and returns the JVM's RDD of
            internal rows, or a text that says why there is none. The first one given in a process
            answers for all.
    """
    try:
        factory = _factory(spark, answer)
        jrelation = factory.relation(spark._jsparkSession, schema.json(), size_bytes, label, text)
        return DataFrame(spark._jsparkSession.baseRelationToDataFrame(jrelation), spark)
    # To py4j a missing class is a package, which cannot be called.
    except (Py4JError, TypeError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise RelationUnavailableError(spark.version, reason) from error


def hybrid(spark: SparkSession) -> Any:
    """Return the JVM's `WindrowHybrid.Factory`, for a session with relations."""
    gateway: Any = spark.sparkContext._gateway
    try:
        with _compiling:
            if gateway not in _hybrids:
                relation = _factories[gateway].getClass().getClassLoader()
                _hybrids[gateway] = new_object(
                    gateway.jvm, __package__, _HYBRID_SOURCE, relation, _HYBRID_FACTORY
                )
            return _hybrids[gateway]
    except (Py4JError, TypeError) as error:
        raise HybridUnavailableError(spark.version, str(error).partition("\n")[0]) from error


def plan_hybrids(spark: SparkSession) -> None:
    """From now on, divide the scans of a session's relations, and see who asks for their files."""
    hybrid(spark).plan(spark._jsparkSession)
    gateway: Any = spark.sparkContext._gateway
    try:
        with _compiling:
            if gateway not in _rules:
                relation = _factories[gateway].getClass().getClassLoader()
                _rules[gateway] = new_object(
                    gateway.jvm, __package__, _NAMES_SOURCE, relation, _NAMES
                )
            _rules[gateway].install(spark._jsparkSession)
    except (Py4JError, TypeError) as error:
        raise HybridUnavailableError(spark.version, str(error).partition("\n")[0]) from error


def base_classes() -> dict[str, str]:
    """Return the name of each class made from `PlannedFormat.java`, and the class it extends."""
    return {_planned_name(base): base for base in (*_READERS.values(), _HIVE_TEXT)}


def _planned_name(base: str) -> str:
    return f"Planned{base.rpartition('.')[2]}"


def planned_format(spark: SparkSession, format: str, options: Mapping[str, str]) -> Any:
    """Return the JVM's `FileFormat` for files that must match a plan.

    Args:
        spark: A classic session with relations.
        format: The table's format.
        options: The format's options.
    """
    base = _HIVE_TEXT if "serde" in options else _READERS[format]
    name = _planned_name(base)
    try:
        with _compiling:
            words = {"BASE": base, "NAME": name}
            parent = (
                _shipped_loader(spark, "HiveText.java", "HiveText") if base == _HIVE_TEXT else None
            )
            loader = _shipped_loader(spark, "PlannedFormat.java", name, words, parent)
        return loader.loadClass(f"windrow.{name}").newInstance().counting(spark._jsc.sc())
    except (Py4JError, TypeError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise FormatUnavailableError(spark.version, format, reason) from error


def check_columns(
    spark: SparkSession, format: str, options: Mapping[str, str], columns: StructType
) -> None:
    """Let Spark refuse columns of types that files of a format cannot hold.

    Args:
        spark: A classic session with relations.
        format: The table's format.
        options: The format's options.
        columns: The columns in its files.
    """
    jvm: Any = spark.sparkContext._jvm
    schema = jvm.org.apache.spark.sql.types.DataType.fromJson(columns.json())
    to_read = () if spark.version.startswith(("3.", "4.0.")) else (True,)
    utils = jvm.org.apache.spark.sql.execution.datasources.DataSourceUtils
    utils.verifySchema(planned_format(spark, format, options), schema, *to_read)


def unpacked(spark: SparkSession, batches: Any, columns: StructType) -> Any:
    """Return the rows of packed batches as the JVM's RDD, for a session with relations.

    Args:
        spark: A classic session.
        batches: The JVM's RDD of batches that `packing.py` packed.
        columns: Their columns.
    """
    try:
        with _compiling:
            loader = _shipped_loader(spark, "PackedRows.java", "PackedRows")
            rows = loader.loadClass(_ROWS).newInstance()
        return rows.unpacked(batches, columns.json())
    except (Py4JError, TypeError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise RelationUnavailableError(spark.version, reason) from error


def _shipped_loader(
    spark: SparkSession,
    source: str,
    name: str,
    words: Mapping[str, str] = _NO_WORDS,
    parent: Any = None,
) -> Any:
    """Return the class loader of classes that tasks need, and ship them to executors.

    Args:
        spark: A classic session with relations.
        source: Their file.
        name: The name under which they are kept and shipped.
        words: Replacements for the words of a template.
        parent: Class loader of the classes that they use; that of relations by default.
    """
    context = spark.sparkContext
    gateway: Any = context._gateway
    by_name = _shipped_classes.setdefault(gateway, {})
    if name not in by_name:
        above = parent or _factories[gateway].getClass().getClassLoader()
        compiler = compiled(gateway.jvm, __package__, source, above, words)
        by_name[name] = compiler.getClassLoader(), compiler.getBytecodes()
    loader, classes = by_name[name]
    supplies = _supplies.setdefault(context, set())
    if name not in supplies:
        jar = Path(context._temp_dir) / f"windrow-{name}.jar"
        with zipfile.ZipFile(jar, "w") as archive:
            for class_ in classes:
                archive.writestr(f"{class_.replace('.', '/')}.class", bytes(classes[class_]))
        # The jar is needed for as long as the application runs.
        context._jsc.sc().addJar(str(jar))
        supplies.add(name)
    return loader


def _factory(spark: SparkSession, answer: Answer) -> Any:
    gateway: Any = spark.sparkContext._gateway
    with _compiling:
        if gateway not in _factories:
            accept_calls(gateway)
            parent = gateway.jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader()
            factory = new_object(gateway.jvm, __package__, _SOURCE, parent, _FACTORY)
            factory.answerBy(Answering(answer))
            _factories[gateway] = factory
        return _factories[gateway]
