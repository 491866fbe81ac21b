"""Folders that Spark reads as one value are one partition to writes of rows that Spark has read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import windrow
from tests.support.files.spellings import SPELLINGS
from tests.support.servers import embedded
from tests.support.tables import hive
from windrow_core.files.partition_values import identities, partition_type
from windrow_core.models import Column
from windrow_spark.writing.errors import UnfitRowsError

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]

NULL = "__HIVE_DEFAULT_PARTITION__"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[windrow.Client]:
    root = tmp_path_factory.mktemp("state")
    with embedded.client(root, allowed_locations=["/"]) as client:
        yield client


def test_texts_are_one_value_if_spark_reads_them_as_one(
    spark: SparkSession, tmp_path: Path
) -> None:
    for type_, values in SPELLINGS.items():
        if type_.startswith("decimal"):
            # Spark keeps the scale of the text and takes its digits for those of the type.
            continue
        texts = [text for value in values for text in value]
        location = tmp_path / type_
        for at, text in enumerate(texts):
            hive.write_file(location / f"k={text}" / "part-0.parquet", [at])
        rows = spark.read.schema(f"id bigint, k {type_}").parquet(f"file://{location}")
        shown = F.hex("k") if type_ in ("string", "binary") else F.col("k").cast("string")
        read = dict(map(tuple, rows.select("id", shown).collect()))
        arrow = partition_type(type_)
        ours = identities([None if text == NULL else text for text in texts], arrow)
        for one in range(len(texts)):
            for other in range(one):
                assert (ours[one] == ours[other]) == (read[one] == read[other]), texts[one]


@pytest.mark.parametrize("mode", ["append", "overwrite_partitions", "overwrite"])
@pytest.mark.parametrize("as_text", [False, True])
def test_rows_written_back_stay_in_the_folders_of_their_values(
    spark: SparkSession, client: windrow.Client, tmp_path: Path, mode: str, as_text: bool
) -> None:
    location, table = tmp_path / "t", f"{mode}_{as_text}"
    for at, folder in enumerate(("month=09/day=06", "month=09/day=7", "month=9/day=07")):
        hive.write_file(location / folder / f"part-{at}.parquet", range(10 * at, 10 * at + 10))
    client.register_table(
        table,
        str(location),
        partition_columns=[Column(name="month", type="int"), Column(name="day", type="int")],
    )
    client.refresh(table)
    rows = client.read(spark, table)
    if as_text:
        # One value in two spellings among the rows.
        text = F.when(F.col("id") % 2 == 0, "07").otherwise("7")
        rows = rows.withColumn("day", F.when(F.col("day") == 7, text).otherwise("6"))
        with pytest.raises(UnfitRowsError, match=r"'07' and '7' are the same value .*cast"):
            client.write(rows, table, mode, target_rows=1_000)

    # Not counted, so that a key need not have one text.
    client.write(rows, table, mode, target_rows=1_000, rows=30)

    times = 2 if mode == "append" else 1
    read = spark.read.schema("id bigint, month int, day int").parquet(f"file://{location}")
    found = sorted((row.day, row.id) for row in read.collect())
    assert found == sorted((6 if id_ < 10 else 7, id_) for id_ in range(30) for _ in range(times))
    assert client.read(spark, table).count() == 30 * times
    folders = {path.parent.relative_to(location).as_posix() for path in location.rglob("*.parquet")}
    # The folder of day 7 that is spelled as among the new rows, else the first.
    home = "month=9/day=07" if as_text else "month=09/day=7"
    both = {"month=9/day=07", "month=09/day=7"} if mode == "append" else {home}
    assert folders == {"month=09/day=06"} | both
