"""Refuses `input_file_name()` and its like above rows that are read in groups outside of relations."""

from __future__ import annotations

import threading
from typing import Any
from weakref import WeakKeyDictionary

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from windrow_spark.compiling import new_object
from windrow_tables.executor.shipping import READER_NAME

_SOURCE = "GroupNames.java"
_CLASS = "windrow.GroupNames"

_compiling = threading.Lock()
_rules: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()


def refuse_names_of_groups(spark: SparkSession) -> None:
    """From now on, refuse a session's queries that ask groups for the files of their rows.

    A Spark that lacks what this needs answers as it does for any rows without files.

    Args:
        spark: A classic session.
    """
    gateway: Any = spark.sparkContext._gateway
    try:
        with _compiling:
            if gateway not in _rules:
                parent = gateway.jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader()
                _rules[gateway] = new_object(gateway.jvm, __package__, _SOURCE, parent, _CLASS)
            _rules[gateway].install(spark._jsparkSession, READER_NAME)
    # To py4j a missing class is a package, which cannot be called.
    except (Py4JError, TypeError):
        return
