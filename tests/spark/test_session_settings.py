"""Settings with which Spark's own reader would read other rows than groups are refused by name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc
from pyspark.sql import SparkSession

import windrow
from tests.support.laws import a_few
from tests.support.servers import embedded
from windrow_spark.errors import SettingError
from windrow_spark.relation.division import Reader
from windrow_spark.session_settings import settings_of

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]

READERS: tuple[Reader, ...] = ("auto", "grouped", "native")
# They drop rows or find other ones, whatever the columns.
EVERY_TABLE = {
    "spark.sql.files.archive.reader.enabled": "true",
    "spark.sql.files.ignoreCorruptFiles": "true",
    "spark.sql.files.ignoreMissingFiles": "true",
    "spark.sql.files.ignoredPathSegmentRegex": "^[._]|^tmp",
    "spark.sql.parquet.fieldId.read.enabled": "true",
    "mapreduce.input.pathFilter.class": "NoTemporaryFiles",
}
# The column of a table that each setting concerns.
BY_COLUMN = {
    "spark.sql.parquet.binaryAsString": ("true", "b"),
    "spark.sql.parquet.int96AsTimestamp": ("false", "t"),
    "spark.sql.parquet.inferTimestampNTZ.enabled": ("false", "n"),
    "spark.sql.legacy.parquet.nanosAsLong": ("true", "t"),
    "spark.sql.legacy.parquet.returnNullStructIfAllFieldsMissing": ("true", "s"),
    "spark.sql.sources.partitionColumnTypeInference.enabled": ("false", "h"),
    "spark.sql.timestampNanosTypes.enabled": ("true", "t"),
    "spark.sql.timestampType": ("TIMESTAMP_NTZ", "t"),
}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[windrow.Client]:
    folder = tmp_path_factory.mktemp("settings")
    rows = pa.table(
        {
            "id": [1],
            "b": pa.array([b"a"]),
            "t": pa.array([0], pa.timestamp("us", "UTC")),
            "n": pa.array([0], pa.timestamp("us")),
            "s": pa.array([{"x": 1}]),
            # Names of types are no types.
            "timestamp": pa.array([[{"binary": 1}]]),
        }
    )
    (folder / "table" / "h=01").mkdir(parents=True)
    pq.write_table(rows, folder / "table" / "h=01" / "a.parquet")
    with embedded.client(folder / "state", allowed_locations=[str(folder)]) as client:
        client.register_table("set.table", str(folder / "table"))
        client.refresh("set.table")
        yield client


@pytest.mark.parametrize("reader", a_few(READERS, 2))
@pytest.mark.parametrize("setting", EVERY_TABLE)
def test_a_setting_that_drops_rows_is_refused(
    spark: SparkSession, client: windrow.Client, setting: str, reader: Reader
) -> None:
    session = spark.newSession()
    session.conf.set(setting, EVERY_TABLE[setting])
    with pytest.raises(SettingError, match=f"{setting} is .*set it to "):
        client.read(session, "set.table", reader=reader)
    session.conf.unset(setting)
    assert client.read(session, "set.table", reader=reader).count() == 1


@pytest.mark.parametrize("setting", a_few(list(BY_COLUMN), 2))
def test_a_setting_is_refused_where_it_concerns_a_column(
    spark: SparkSession, client: windrow.Client, setting: str
) -> None:
    value, column = BY_COLUMN[setting]
    session = spark.newSession()
    session.conf.set(setting, value)
    for reader in READERS:
        what = "rows" if column == "h" else f"column '{column}'"
        with pytest.raises(SettingError, match=f"{setting} is {value}.* {what} of set.table"):
            client.read(session, "set.table", columns=[column], reader=reader)
        if column not in ("h", "s"):
            others = client.read(session, "set.table", columns=["id", "timestamp"], reader=reader)
            assert [row.id for row in others.collect()] == [1]


def test_settings_are_known_however_long_they_are(spark: SparkSession) -> None:
    session = spark.newSession()
    settings = {f"spark.test.{length}": "é" * length for length in (0, 7_990, 8_000, 50_000)}
    for name, value in settings.items():
        session.conf.set(name, value)
    answer = settings_of(session)
    assert {name: answer[name] for name in settings} == settings


@pytest.mark.parametrize("reader", READERS)
def test_a_setting_counts_as_it_is_when_the_query_runs(
    spark: SparkSession, client: windrow.Client, reader: Reader
) -> None:
    session = spark.newSession()
    rows = client.read(session, "set.table", reader=reader)
    session.conf.set("spark.sql.files.ignoreCorruptFiles", "true")
    with pytest.raises(Exception, match=r"spark\.sql\.files\.ignoreCorruptFiles is true"):
        rows.collect()
    session.conf.set("spark.sql.files.ignoreCorruptFiles", "false")
    assert rows.count() == 1


@pytest.mark.parametrize(
    ("setting", "value"),
    a_few(
        [
            ("spark.sql.orc.impl", "hive"),
            ("orc.filter.plugin", "true"),
            ("orc.filter.use.selected", "true"),
            ("orc.force.positional.evolution", "true"),
            ("orc.proleptic.gregorian", "true"),
            ("orc.proleptic.gregorian.default", "true"),
            ("orc.skip.corrupt.data", "true"),
            ("hive.exec.orc.skip.corrupt.data", "true"),
        ],
        2,
    ),
)
def test_settings_of_orc_are_refused_for_orc_alone(
    spark: SparkSession, client: windrow.Client, tmp_path: Path, setting: str, value: str
) -> None:
    location = tmp_path / "table"
    location.mkdir()
    orc.write_table(pa.table({"d": pa.array([0], pa.date32())}), location / "a.orc")
    session = spark.newSession()
    session.conf.set(setting, value)
    with embedded.client(tmp_path / "state", allowed_locations=[str(location)]) as orc_client:
        orc_client.register_table("set.orc", str(location), format="orc")
        orc_client.refresh("set.orc")
        for reader in READERS:
            with pytest.raises(SettingError, match=setting):
                orc_client.read(session, "set.orc", reader=reader)
        assert orc_client.read(spark, "set.orc").count() == 1
    assert client.read(session, "set.table").count() == 1


def test_positions_of_orc_are_refused_unless_the_table_asks_for_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    location = tmp_path / "table"
    location.mkdir()
    orc.write_table(pa.table({"a": [1]}), location / "a.orc")
    setting = "orc.force.positional.evolution"
    hadoop = spark._jsparkSession.sparkContext().hadoopConfiguration()
    with embedded.client(tmp_path / "state", allowed_locations=[str(location)]) as client:
        for name, options in (("set.named", {}), ("set.forced", {setting: "true"})):
            client.register_table(
                name,
                str(location),
                format="orc",
                format_options=options,
                columns={"a": "bigint"},
            )
            client.refresh(name)
        hadoop.set(setting, "true")
        try:
            for reader in READERS:
                with pytest.raises(SettingError, match=setting):
                    client.read(spark, "set.named", reader=reader)
            assert client.read(spark, "set.forced").count() == 1
        finally:
            hadoop.unset(setting)
        assert client.read(spark, "set.named").count() == 1
