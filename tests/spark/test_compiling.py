"""Our Java classes are compiled once for all drivers of a user, and name their lines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from windrow_spark import compiling
from windrow_spark.compiling import Classes

PACKAGE, SOURCES = "windrow_spark.relation", ["ScanAnswer.java", "Calls.java"]
READER = "org.apache.spark.sql.execution.datasources.text.TextFileFormat"


@pytest.fixture
def caches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "windrow" / "classes"


def _compiled(spark: SparkSession, *more: Any) -> Classes:
    jvm: Any = spark.sparkContext._jvm
    loader = jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader()
    return compiling.compiled(jvm, PACKAGE, SOURCES, loader, *more)


def test_a_driver_loads_what_another_has_compiled(
    spark: SparkSession, caches: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = _compiled(spark)
    assert len(list(caches.iterdir())) == 1

    monkeypatch.delattr(compiling, "_compiled_anew")
    second = _compiled(spark)

    assert second.bytecodes == first.bytecodes
    for name in first.bytecodes:
        assert second.loader.loadClass(name).getName() == name


def test_other_sources_or_another_spark_have_entries_of_their_own(
    spark: SparkSession, caches: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _compiled(spark)
    _compiled(spark, {"WORD": "value"})
    _compiled(spark, {"WORD": READER})
    monkeypatch.setattr(compiling, "_digest", lambda package: f"other files of {package}")
    _compiled(spark)
    monkeypatch.setattr(compiling, "_origin", lambda *_: ("spark-of-a-vendor.jar", 1))
    _compiled(spark)

    assert len(list(caches.iterdir())) == 5


def test_without_a_place_to_keep_them_classes_are_compiled(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    # No folder can be made there, by root neither.
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/none")

    assert "windrow.ScanAnswer" in _compiled(spark).bytecodes


def test_stack_traces_name_files_and_lines(spark: SparkSession, caches: Path) -> None:
    code = _compiled(spark).bytecodes["windrow.ScanAnswer"]

    assert b"LineNumberTable" in code
    assert b"SourceFile" in code
    assert b"ScanAnswer.java" in code
