"""Tables of ORC give what Spark's own reader gives, whoever wrote them and whichever way is taken."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import windrow
from tests.support.published import Verdict, cells, read_in_full
from windrow.spark.arrow_types import arrow_schema, spark_schema
from windrow.spark.executor.errors import TaskReadError
from windrow_service.inventory import InventoryError, take_inventory
from windrow_service.usecases.tables.columns import wire_columns

pytestmark = pytest.mark.spark

FIXTURES = Path(__file__).parents[1] / "fixtures" / "apache-orc"
FOLDER = os.environ.get("WINDROW_PUBLISHED_FILES")
READERS = ("auto", "grouped", "native")

# All others are read as by Spark.
REFUSED = {
    "TestOrcFile.testTimestamp": "it holds no struct of columns",
    "TestOrcFile.testUnionAndTimestamp": "'union' .* is of type .*union",
    "TestOrcFile.testWithoutCompressionBlockSize": "it holds no struct of columns",
    "version1999": "it is of version 19.99 of ORC",
    "zero": "holds no files",
    # Their footers are sound.
    "missing_blob_stream_in_string_dict": "cannot be read as ORC: DICTIONARY_DATA stream not found",
    "missing_length_stream_in_string_dict": "cannot be read as ORC: LENGTH stream not found",
    "negative_dict_entry_lengths": "cannot be read as ORC: Negative dictionary entry length",
    "stripe_footer_bad_column_encodings": "cannot be read as ORC: bad StripeFooter",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("orc")


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[windrow.Client]:
    with windrow.embedded(folder / "state", allowed_locations=[str(folder.parent)]) as client:
        yield client


def compared(spark: SparkSession, folder: Path) -> Verdict:
    """Read the one file in a folder in groups, as far as they may, and with Spark."""
    try:
        theirs: pa.Table | str = spark.read.orc(str(folder)).toArrow()
    except PySparkException as error:
        theirs = re.sub(r"\s+", " ", str(error))[:200]
    except Exception as error:  # py4j's own, of Spark's internal errors
        theirs = re.sub(r"\s+", " ", str(error))[:200]
    try:
        inventory = take_inventory(str(folder), table_format="orc")
        if not len(inventory.files):
            return Verdict(kind="refused by both", detail="the folder holds no files")
        schema = spark_schema(wire_columns(inventory.data_schema))
        native = set(inventory.files["native_columns"][0].as_py())
        held = [f for f in arrow_schema(schema) if f.name.lower() not in native]
        ours = read_in_full(str(folder), inventory, pa.schema(held), "orc")
    except (InventoryError, TaskReadError) as error:
        by_both = isinstance(theirs, str)
        return Verdict(kind="refused by both" if by_both else "refused by us", detail=str(error))
    if isinstance(theirs, str):
        return Verdict(kind="read by us alone", detail=theirs)
    types = spark.read.orc(str(folder)).schema.simpleString()
    if types != schema.simpleString():
        return Verdict(kind="different", detail=f"{schema.simpleString()} where Spark has {types}")
    for name in [field.name for field in held]:
        own = theirs[name]
        if cells(ours[name].cast(own.type)) != cells(own):
            return Verdict(kind="different", detail=f"values of {name!r}")
    return Verdict(kind="equal", detail=f"in groups {ours.column_names}")


@pytest.mark.parametrize("file", sorted(FIXTURES.glob("*.orc")), ids=lambda file: file.stem)
def test_a_published_file_is_read_as_by_spark_or_refused_by_name(
    spark: SparkSession, tmp_path: Path, file: Path
) -> None:
    shutil.copy(file, tmp_path)

    verdict = compared(spark, tmp_path)

    if (said := REFUSED.get(file.stem)) is not None:
        assert verdict.kind == "refused by both", verdict
        assert re.search(said, verdict.detail, re.DOTALL), verdict
    else:
        assert verdict.kind == "equal", verdict


@pytest.mark.skipif(FOLDER is None, reason="WINDROW_PUBLISHED_FILES names no folder")
def test_no_orc_file_of_a_folder_is_silently_read_differently(
    spark: SparkSession, tmp_path: Path
) -> None:
    verdicts = {}
    for number, file in enumerate(sorted(Path(str(FOLDER)).rglob("*.orc"))):
        folder = tmp_path / str(number)
        folder.mkdir()
        shutil.copy(file, folder)
        verdicts[file.stem] = verdict = compared(spark, folder)
        sys.stdout.write(f"{file.relative_to(str(FOLDER))}: {verdict.kind}. {verdict.detail}\n")

    wrong = {n: v for n, v in verdicts.items() if v.kind not in ("equal", "refused by both")}
    assert wrong == {}
    assert {n for n, v in verdicts.items() if v.kind == "refused by both"} <= set(REFUSED)
