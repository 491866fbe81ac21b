"""ORC tables have the rows of Spark's own reader, whoever wrote them and whatever reads them."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import windrow
from tests.support.files.orc_files import file_of, footer_of, write
from tests.support.laws import a_few
from tests.support.servers import embedded
from tests.support.tables.published import Verdict, cells, read_in_full
from windrow_calls.errors import RefreshFailedError
from windrow_core.files.errors import InventoryError
from windrow_core.files.formats import ORC
from windrow_service.inventory.build import take_inventory
from windrow_service.inventory.look import Look
from windrow_service.orc.columns import Kind
from windrow_service.usecases.tables.columns import wire_columns
from windrow_spark.arrow_types import arrow_schema, spark_schema
from windrow_spark.errors import TaskFailedError
from windrow_spark.failures import plain_errors
from windrow_tables.errors import OnlySparkReadsError
from windrow_tables.executor.errors import TaskReadError

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]

FIXTURES = Path(__file__).parents[1] / "fixtures" / "apache-orc"
FOLDER = os.environ.get("WINDROW_PUBLISHED_FILES")
RANDOM = np.random.default_rng(5)

# All other files are read as by Spark.
REFUSED = {
    "TestOrcFile.testTimestamp": "it holds no struct of columns",
    "TestOrcFile.testUnionAndTimestamp": "'union' .* is of type .*union",
    "TestOrcFile.testWithoutCompressionBlockSize": "it holds no struct of columns",
    "version1999": "it is of version 19.99 of ORC",
    "zero": "holds no files",
    # The footers of the following files are sound.
    "missing_blob_stream_in_string_dict": "cannot be read as ORC: DICTIONARY_DATA stream not found",
    "missing_length_stream_in_string_dict": "cannot be read as ORC: LENGTH stream not found",
    "negative_dict_entry_lengths": "cannot be read as ORC: Negative dictionary entry length",
    "stripe_footer_bad_column_encodings": "cannot be read as ORC: bad StripeFooter",
}


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[windrow.Client]:
    with embedded.client(folder / "state", allowed_locations=[str(folder.parent)]) as client:
        yield client


def compared(spark: SparkSession, folder: Path) -> Verdict:
    """Read the only file in a folder in groups, as far as possible, and with Spark."""
    try:
        theirs: pa.Table | str = spark.read.orc(str(folder)).toArrow()
    except PySparkException as error:
        theirs = re.sub(r"\s+", " ", str(error))[:200]
    except Exception as error:  # py4j's own, for internal errors of Spark
        theirs = re.sub(r"\s+", " ", str(error))[:200]
    try:
        inventory = take_inventory(Look(location=str(folder), file_format=ORC))
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


@pytest.mark.parametrize(
    "file", a_few(sorted(FIXTURES.glob("*.orc")), 3), ids=lambda file: file.stem
)
def test_a_published_file_is_read_as_by_spark_or_refused_by_name(
    spark: SparkSession, tmp_path: Path, file: Path
) -> None:
    shutil.copy(file, tmp_path)

    verdict = compared(spark, tmp_path)

    if (reason := REFUSED.get(file.stem)) is not None:
        assert verdict.kind == "refused by both", verdict
        assert re.search(reason, verdict.detail, re.DOTALL), verdict
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


def sorted_rows(rows: DataFrame) -> list[str]:
    return sorted(map(str, rows.collect()))


def registered(
    client: windrow.Client, location: Path, name: str | None = None, **definition: Any
) -> str:
    name = name or f"orc.{location.name}"
    client.register_table(name, str(location), "orc", **definition)
    client.refresh(name)
    return name


def test_types_of_footers_are_those_that_spark_infers(spark: SparkSession, tmp_path: Path) -> None:
    at = {"name": "at", "kind": Kind.LONG, "catalyst": "timestamp_ntz"}
    types: dict[str, dict[str, Any]] = {
        "old": {"kind": Kind.DECIMAL},
        "decimal": {"kind": Kind.DECIMAL, "precision": 12, "scale": 4},
        "varchar": {"kind": Kind.VARCHAR, "length": 3},
        "time": {"kind": Kind.TIMESTAMP},
        "instant": {"kind": Kind.TIMESTAMP_INSTANT},
        "struct": {"kind": Kind.STRUCT, "inside": [at, {"name": "B C", "kind": Kind.SHORT}]},
        "list": {"kind": Kind.LIST, "inside": [{"kind": Kind.BYTE}]},
        "map": {"kind": Kind.MAP, "inside": [{"kind": Kind.DATE}, {"kind": Kind.FLOAT}]},
        "binary": {"kind": Kind.BINARY},
        "boolean": {"kind": Kind.BOOLEAN},
    }
    footer = footer_of(*({"name": name, **type_} for name, type_ in types.items()))
    (tmp_path / "f.orc").write_bytes(file_of(footer))

    found = take_inventory(Look(location=str(tmp_path), file_format=ORC)).data_schema

    theirs = spark.read.orc(str(tmp_path)).schema
    assert spark_schema(wire_columns(found)).simpleString() == theirs.simpleString()


def test_columns_without_names_are_found_by_position_as_in_spark(
    spark: SparkSession, client: windrow.Client, folder: Path
) -> None:
    location = folder / "nameless"
    write(location, "p=1/1.orc", {"_col0": [1, 2], "_col1": ["a", "b"], "_col2": [0.5, None]})
    write(location, "p=1/2.orc", {"_col0": [3]})
    write(location, "p=2/3.orc", {"name": ["named"], "ID": [4]})
    columns = {"id": "bigint", "name": "string", "x": "double", "late": "int"}
    table = registered(client, location, columns=columns)
    schema = "id bigint, name string, x double, late int, p int"
    # One task each: tasks that open both kinds of file at once disturb Spark's reader.
    own = spark.read.schema(schema).orc(str(location)).coalesce(1)
    rows = client.read(spark, table, parallelism=1)

    assert sorted_rows(rows) == sorted_rows(own)
    # Positions are those among all columns, whichever are requested.
    some = client.read(spark, table, columns=["x", "id"], parallelism=1)
    assert sorted_rows(some) == sorted_rows(own.select("x", "id"))
    assert sorted_rows(rows.where("id >= 2").select("name")) == sorted_rows(
        own.where("id >= 2").select("name")
    )
    grouped = client.read(spark, table, reader="grouped")
    with pytest.raises(OnlySparkReadsError, match=r"p=1/[12]\.orc"), plain_errors():
        grouped.collect()


def test_position_can_be_forced_as_in_spark(
    spark: SparkSession, client: windrow.Client, folder: Path
) -> None:
    location = folder / "forced"
    write(location, "1.orc", {"b": [1], "a": ["x"]})
    option = {"orc.force.positional.evolution": "true"}
    columns = {"a": "bigint", "b": "string", "c": "int"}
    table = registered(client, location, columns=columns, format_options=option)
    own = spark.read.options(**option).schema("a bigint, b string, c int").orc(str(location))

    assert sorted_rows(client.read(spark, table)) == sorted_rows(own)
    assert sorted_rows(client.read(spark, table, columns=["b"])) == ["Row(b='x')"]


@pytest.fixture(scope="module")
def mixed(client: windrow.Client, folder: Path) -> str:
    """A table of a file that either reader can read, and a file with old dates."""
    location = folder / "mixed"
    day = pa.array([0, 1, None], pa.int32()).cast(pa.date32())
    old = pa.array([-200_000, 1, None], pa.int32()).cast(pa.date32())
    write(location, "p=1/new.orc", {"k": [1, 2, None], "day": day})
    write(location, "p=2/old.orc", {"k": [3, 4, 5], "day": old})
    return registered(client, location)


def test_a_file_goes_to_spark_for_the_columns_that_need_it(
    spark: SparkSession, client: windrow.Client, mixed: str, folder: Path
) -> None:
    own = spark.read.orc(str(folder / "mixed"))
    rows = client.read(spark, mixed)

    assert sorted_rows(rows) == sorted_rows(own)
    explained = client.explain_read(spark, mixed, columns=["k", "day"])
    assert explained.native_files >= 1
    grouped = client.read(spark, mixed, columns=["k"], reader="grouped")
    assert sorted_rows(grouped) == sorted_rows(own.select("k"))
    assert client.read(spark, mixed, columns=["k"], reader="grouped").count() == 6


def test_rows_are_never_left_unfiltered_or_unsorted(
    spark: SparkSession, client: windrow.Client, mixed: str, folder: Path
) -> None:
    filtered = client.read(spark, mixed, columns=["day"], filter="k > 3")
    sorted_by = registered(client, folder / "mixed", "orc.sorted", sort_columns=["k"])
    merged = client.read(spark, sorted_by, columns=["k", "p"])

    with pytest.raises(OnlySparkReadsError, match=r"old\.orc.*use \.where"), plain_errors():
        filtered.collect()
    assert [
        row.k for row in client.read(spark, mixed, columns=["k"], filter="k > 3").collect()
    ] == [4, 5]
    assert [row.k for row in merged.where("p = 2").collect()] == [3, 4, 5]
    with pytest.raises(OnlySparkReadsError, match=r"old\.orc.*sort columns"), plain_errors():
        client.read(spark, sorted_by, columns=["day"]).collect()


@pytest.mark.parametrize("reader", ["grouped", "native"])
def test_a_file_that_changed_or_is_damaged_is_named(
    spark: SparkSession, client: windrow.Client, folder: Path, reader: Any
) -> None:
    location = folder / f"changed-{reader}"
    file = write(location, "1.orc", {"x": RANDOM.permutation(5_000)}, compression="zlib")
    table = registered(client, location)
    rows = client.read(spark, table, reader=reader)
    content, status = file.read_bytes(), file.stat()

    file.write_bytes(content[:50] + b"\xff" * (len(content) - 550) + content[-500:])
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    with pytest.raises(TaskFailedError, match=r"1\.orc"), plain_errors():
        rows.collect()
    os.utime(file, ns=(0, 0))
    with pytest.raises(TaskFailedError, match=r"1\.orc' has changed since"), plain_errors():
        rows.collect()
    file.write_bytes(b"\0\1" * 8)
    with pytest.raises(RefreshFailedError, match=r"(?s)as ORC.*'1\.orc': it is not ORC"):
        client.refresh(table)


def test_a_large_file_is_split_at_its_stripes(
    spark: SparkSession, client: windrow.Client, folder: Path
) -> None:
    location = folder / "large"
    count = 60_000
    numbers = RANDOM.permutation(count)
    write(location, "1.orc", {"x": numbers}, stripe_size=2**14, compression="uncompressed")
    table = registered(client, location)
    rows = client.read(spark, table, reader="grouped", max_split_size=2**16)

    assert rows.rdd.getNumPartitions() > 2
    assert sorted(row.x for row in rows.collect()) == list(range(count))
    assert rows.count() == count
