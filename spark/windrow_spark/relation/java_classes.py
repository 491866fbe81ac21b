"""The few Java classes of tables in Spark: compiled once in the driver's JVM, called by Spark."""

from __future__ import annotations

import threading
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from windrow_core.models import BucketSpec
from windrow_spark.compiling import Classes, compiled
from windrow_spark.errors import FormatUnavailableError, RelationUnavailableError
from windrow_spark.relation.callbacks import Answering, accept_calls

_SOURCES = (
    "BucketUse.java",
    "Calls.java",
    "Conditions.java",
    "DeletedRows.java",
    "FigureAnswers.java",
    "FileCheck.java",
    "InventoryAnswers.java",
    "JobDescriptions.java",
    "NewestSnapshots.java",
    "OpenedPacks.java",
    "PackFiles.java",
    "PackFooter.java",
    "PackRows.java",
    "PackedRows.java",
    "PartitionConditions.java",
    "PartitionFigures.java",
    "PartitionValues.java",
    "PlacedTasks.java",
    "PlannedFiles.java",
    "RuntimeFilters.java",
    "ScanAnswer.java",
    "ScanLimits.java",
    "ScannedRows.java",
    "SplitPacking.java",
    "TableHints.java",
    "TableIndex.java",
    "TableInsert.java",
    "TableScan.java",
    "TableStatistics.java",
    "TableStrategy.java",
)
_FACTORY = "windrow.TableStrategy$Factory"
_FILES = "windrow.PlannedFiles$Factory"
_PACKS = "windrow.PackFiles$Factory"
_ANSWERS = "windrow.ScanAnswer$Factory"
_ENDS = "windrow.JobDescriptions$Ends"
_ROWS = "windrow.PackedRows"
_VALUES = "windrow.PartitionValues$Reading"
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
_objects: WeakKeyDictionary[Any, dict[str, Any]] = WeakKeyDictionary()
_compiled: WeakKeyDictionary[Any, dict[str, Classes]] = WeakKeyDictionary()
_supplies: WeakKeyDictionary[SparkContext, set[str]] = WeakKeyDictionary()


def relation(
    spark: SparkSession,
    format: Any,
    format_options: Mapping[str, str],
    schema: StructType,
    partition_columns: Sequence[str],
    whole: bool,
    buckets: BucketSpec | None,
    size_bytes: int,
    label: str,
    text: str,
    answers: Answering,
) -> DataFrame:
    """Return a table's snapshot as a DataFrame, whose scans ask for `answers`.

    Args:
        spark: A classic session.
        format: The JVM's `FileFormat`, from `planned_format`.
        format_options: The format's options.
        schema: All of its columns.
        partition_columns: Those whose values are the same in each file.
        whole: Whether the relation has all rows of its files.
        buckets: How its rows are divided into buckets.
        size_bytes: Its size for Spark's planner.
        label: Its name in Spark's plans.
        text: Text that says what is read, passed on with each request. Relations with the same text
            are equal.
        answers: `scans.ANSWERS`; those that are given first in a process answer for all.
    """
    try:
        factory = _factory(spark, answers)
        session = spark._jsparkSession
        files = factory.relation(
            session,
            format,
            dict(format_options),
            schema.json(),
            list(partition_columns),
            whole,
            [] if buckets is None else list(buckets.columns),
            0 if buckets is None else buckets.count,
            size_bytes,
            label,
            text,
        )
        factory.extend(session.extensions())
        return DataFrame(session.baseRelationToDataFrame(files), spark)
    # To py4j a missing class is a package, which cannot be called.
    except (Py4JError, TypeError) as error:
        raise RelationUnavailableError(spark.version, _first_line(error)) from error


def relation_in_place_of(
    spark: SparkSession,
    theirs: Any,
    format: Any,
    format_options: Mapping[str, str],
    schema: StructType,
    size_bytes: int,
    label: str,
    text: str,
    answers: Answering,
) -> Any:
    """Return one of the JVM's `HadoopFsRelation` with the columns of `theirs` and our snapshot.

    Args:
        spark: A classic session.
        theirs: Spark's relation of the same columns.
        format: As in `relation`.
        format_options: As in `relation`.
        schema: As in `relation`.
        size_bytes: As in `relation`.
        label: As in `relation`.
        text: As in `relation`.
        answers: As in `relation`.
    """
    return _factory(spark, answers).inPlaceOf(
        theirs, format, dict(format_options), schema.json(), size_bytes, label, text
    )


def prepare(spark: SparkSession, answers: Answering) -> Any:
    """Let a session's application plan our scans; return the class loader of our classes."""
    try:
        _factory(spark, answers).extend(spark._jsparkSession.extensions())
        return _relation_classes(spark).loader
    except (Py4JError, TypeError) as error:
        raise RelationUnavailableError(spark.version, _first_line(error)) from error


def files_factory(spark: SparkSession) -> Any:
    """Return the JVM's `PlannedFiles.Factory`."""
    return _object(spark, _FILES)


def packs_factory(spark: SparkSession) -> Any:
    """Return the JVM's `PackFiles.Factory`."""
    return _object(spark, _PACKS)


def answers_factory(spark: SparkSession) -> Any:
    """Return the JVM's `ScanAnswer.Factory`."""
    return _object(spark, _ANSWERS)


class QueryEnd(NamedTuple):
    """How a query ended.

    Attributes:
        at: When, in seconds since 1970.
        is_stale: Whether it failed because a file had changed since it was planned.
    """

    at: float
    is_stale: bool


def end_of_query(spark: SparkSession, scan: str) -> QueryEnd | None:
    """Return how the query of a scan ended; None if it has not.

    Args:
        spark: A classic session.
        scan: The scan's description in Spark's UI.
    """
    end_ms = _object(spark, _ENDS).endOf(spark._jsc.sc(), scan)
    return QueryEnd(abs(end_ms) / 1_000, end_ms < 0) if end_ms else None


def partition_rows(spark: SparkSession, stream: bytes, columns: StructType) -> Any:
    """Return partition values as the JVM's array of internal rows.

    Args:
        spark: A classic session.
        stream: The values, as an Arrow stream of one batch.
        columns: The partition columns.
    """
    return _object(spark, _VALUES).rows(stream, columns.json())


def base_classes() -> dict[str, str]:
    """Return the name of each class made from `PlannedFormat.java`, and the class it extends."""
    return {_planned_name(base): base for base in (*_READERS.values(), _HIVE_TEXT)}


def _planned_name(base: str) -> str:
    return f"Planned{base.rpartition('.')[2]}"


def planned_format(spark: SparkSession, format: str, options: Mapping[str, str]) -> Any:
    """Return the JVM's `FileFormat` for files that must match a plan.

    Args:
        spark: A classic session.
        format: The table's format.
        options: The format's options.
    """
    base = _HIVE_TEXT if "serde" in options else _READERS[format]
    name = _planned_name(base)
    try:
        parent = _relation_classes(spark).loader
        if base == _HIVE_TEXT:
            parent = _classes(spark, "HiveText", ["HiveText.java"], lambda: parent).loader
        words = {"BASE": base, "NAME": name}
        classes = _classes(spark, name, ["PlannedFormat.java"], lambda: parent, words)
        reader = classes.loader.loadClass(f"windrow.{name}").newInstance()
        return reader.counting(spark._jsc.sc())
    except (Py4JError, TypeError) as error:
        raise FormatUnavailableError(spark.version, format, _first_line(error)) from error


def check_columns(
    spark: SparkSession, format: str, options: Mapping[str, str], columns: StructType
) -> None:
    """Let Spark refuse columns of types that files of a format cannot hold.

    Args:
        spark: A classic session.
        format: The table's format.
        options: The format's options.
        columns: The columns in its files.
    """
    jvm: Any = spark.sparkContext._jvm
    schema = jvm.org.apache.spark.sql.types.DataType.fromJson(columns.json())
    to_read = () if spark.version.startswith(("3.", "4.0.")) else (True,)
    utils = jvm.org.apache.spark.sql.execution.datasources.DataSourceUtils
    utils.verifySchema(planned_format(spark, format, options), schema, *to_read)


def unpacked(
    spark: SparkSession, batches: Any, columns: StructType, *, columnar: bool = False
) -> Any:
    """Return packed batches as the JVM's RDD of rows, or of columnar batches.

    Args:
        spark: A classic session.
        batches: The JVM's RDD of batches that `packing.py` packed.
        columns: Their columns.
        columnar: Whether to return batches.
    """
    try:
        rows = _object(spark, _ROWS)
        return (rows.batches if columnar else rows.unpacked)(batches, columns.json())
    except (Py4JError, TypeError) as error:
        raise RelationUnavailableError(spark.version, _first_line(error)) from error


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


def _object(spark: SparkSession, name: str) -> Any:
    """Return an object of one of our classes that has no state, one for each JVM."""
    classes = _relation_classes(spark)
    objects = _objects.setdefault(spark.sparkContext._gateway, {})
    if name not in objects:
        objects[name] = classes.loader.loadClass(name).newInstance()
    return objects[name]


def _relation_classes(spark: SparkSession) -> Classes:
    def parent() -> Any:
        utils: Any = spark.sparkContext._gateway.jvm.org.apache.spark.util.Utils
        return utils.getContextOrSparkClassLoader()

    try:
        return _classes(spark, "relation", _SOURCES, parent)
    except (Py4JError, TypeError) as error:
        raise RelationUnavailableError(spark.version, _first_line(error)) from error


def _classes(
    spark: SparkSession,
    name: str,
    sources: Sequence[str],
    parent: Callable[[], Any],
    words: Mapping[str, str] = _NO_WORDS,
) -> Classes:
    """Return classes that tasks need too: compiled once, and shipped to executors.

    Args:
        spark: A classic session.
        name: The name under which they are kept and shipped.
        sources: Their files.
        parent: Returns the class loader of the classes that they use.
        words: Replacements for the words of a template.
    """
    context = spark.sparkContext
    gateway: Any = context._gateway
    with _compiling:
        by_name = _compiled.setdefault(gateway, {})
        if name not in by_name:
            by_name[name] = compiled(gateway.jvm, __package__, sources, parent(), words)
        supplies = _supplies.setdefault(context, set())
        if name not in supplies:
            jar = Path(context._temp_dir) / f"windrow-{name}.jar"
            with zipfile.ZipFile(jar, "w") as archive:
                for class_, code in by_name[name].bytecodes.items():
                    archive.writestr(f"{class_.replace('.', '/')}.class", code)
            # The jar is needed for as long as the application runs.
            context._jsc.sc().addJar(str(jar))
            supplies.add(name)
        return by_name[name]


def _factory(spark: SparkSession, answers: Answering) -> Any:
    gateway: Any = spark.sparkContext._gateway
    classes = _relation_classes(spark)
    with _compiling:
        if gateway not in _factories:
            accept_calls(gateway)
            factory = classes.loader.loadClass(_FACTORY).newInstance()
            factory.answerBy(answers)
            _factories[gateway] = factory
        return _factories[gateway]
