"""Locations as the file systems of a session's own Hadoop name them."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from py4j.java_gateway import JavaClass
from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from windrow_core.files.schemes import SCHEMES, beginning_of
from windrow_core.files.table_paths import is_outside

_LOCAL = "file://"

# Schemes of file systems that a context's Hadoop lacks, each with the class that a setting names.
MISSING: WeakKeyDictionary[SparkContext, set[tuple[str, str | None]]] = WeakKeyDictionary()


def hadoop_location(spark: SparkSession, location: str) -> str | None:
    """Return a table's location as a session's Hadoop reads it, without escapes.

    The JVM is asked, and looks at no file.

    Args:
        spark: A classic session.
        location: The canonical location.

    Returns:
        A URI, whose scheme is the first one that Hadoop has a file system for: on S3 `s3`, else
        `s3a`. None if it has none.
    """
    scheme, separator, rest = location.partition("://")
    if not separator:
        return _LOCAL + location
    names = next(((one.name, *one.synonyms) for one in SCHEMES if one.name == scheme), (scheme,))
    context: Any = spark.sparkContext
    settings = context._jsc.hadoopConfiguration()
    name = next((name for name in names if _has_file_system(context, settings, name)), None)
    return None if name is None else f"{name}://{rest}"


def _has_file_system(context: Any, settings: Any, scheme: str) -> bool:
    """Return whether Hadoop has a file system, whose class a setting may name.

    An error of the JVM's takes 20 to 100 ms, so what is missing is kept, as Hadoop keeps it.
    """
    missing = MISSING.setdefault(context, set())
    file_system = scheme, settings.get(f"fs.{scheme}.impl")
    if file_system in missing:
        return False
    # A path of attributes would ask the JVM about each of them.
    files = JavaClass("org.apache.hadoop.fs.FileSystem", context._gateway._gateway_client)
    try:
        files.getFileSystemClass(scheme, settings)
    except Py4JJavaError:
        # Hadoop has none of this name, or lacks its classes.
        missing.add(file_system)
        return False
    return True


def hadoop_path(location: str, home: str, path: str) -> str | None:
    """Return a path of an inventory as a session's Hadoop reads it, without escapes.

    Args:
        location: The table's canonical location.
        home: What `hadoop_location` returned for it.
        path: The path: inside the location, or absolute.

    Returns:
        None for a file outside of the location in a store of another kind.
    """
    if not is_outside(path):
        return f"{home.rstrip('/')}/{path}"
    beginning = beginning_of(location)
    if not path.startswith(beginning):
        return None
    return home.removesuffix(location.removeprefix(beginning)) + path.removeprefix(beginning)
