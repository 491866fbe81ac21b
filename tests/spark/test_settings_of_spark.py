"""Settings of a session have the effect on rows that docs/reference/settings-of-spark.md says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession

import windrow
from tests.support.laws import is_nightly
from tests.support.servers import embedded
from tests.support.spark.settings_page import FOLLOWED, WITHOUT_EFFECT, listed
from windrow_spark.relation.division import Reader

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]

COLUMNS = {
    "id": "bigint",
    "text": "string",
    "amount": "decimal(10,2)",
    "day": "date",
    "at": "timestamp",
    "score": "double",
    "added": "int",
}
NESTED = {"pair": "struct<a:string,b:int>", "items": "array<string>", "counts": "map<string,int>"}
FORMATS = {
    "parquet": COLUMNS | NESTED,
    "orc": COLUMNS | NESTED,
    "csv": COLUMNS,
    "json": COLUMNS | NESTED | {"broken": "string"},
}
# Lines that settings of these formats decide about.
CSV = """1,a,1.50,2020-01-31,2020-01-31 10:00:00,0.5,1
2,"b,""c\"\"\",2,2020-1-31,2020-01-31T10:00:00.123Z,NaN,
x,d,3,31/01/2020,1883-11-18T12:00:00-07:52:58,1e3,2
4,,"",,,,
5,e,1234567890123,2020-02-30,2020-02-30 10:00:00,Inf,3,more
"""
JSON = r"""{"id":1,"text":1.50,"amount":1.50,"day":"2020-01-31","at":"2020-01-31T10:00:00Z","score":0.5}
{"id":2,"text":{"a": 1.0, "b":[1 ,2]},"day":"2020-1-31","at":"2020-01-31 10:00:00","score":"NaN"}
{"id":"x","text":"a","pair":{"a":"b","b":"c"},"items":["a",1,null],"counts":{"a":1,"a":2}}
{"id":4,"text":"","amount":"","day":"","at":"","score":"","pair":"","items":"","counts":""}
{"id":5,"items":[{"a":1}],"counts":{"a":"b"},"pair":{"a":{"c":1},"b":2},"at":"1883-11-18T12:00:00-07:52:58"}
{"id":6,"day":"18000","at":"1500000000","text":"a
{"id":7,"text":true,"day":"0012-01-01","at":"30-01-2020"}
"""


@pytest.fixture(scope="module")
def folder(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables of each format with the same columns, in two partitions."""
    folder = tmp_path_factory.mktemp("settings")
    rows = spark.sql(
        """SELECT id, concat('text ', id) text, cast(id AS decimal(10,2)) amount,
          date'2020-01-31' + cast(id AS int) day, timestamp'2020-03-07 23:30:00' at,
          IF(id = 1, double('NaN'), IF(id = 2, -0.0D, double(id))) score,
          IF(id = 3, NULL, named_struct('a', 'x', 'b', cast(id AS int))) pair,
          array('a', NULL) items, map('a', cast(id AS int)) counts, id % 2 AS part FROM range(6)"""
    )
    for format in ("parquet", "orc"):
        rows.write.partitionBy("part").format(format).save(str(folder / format))
    for format, lines in (("csv", CSV), ("json", JSON)):
        for part in range(2):
            (folder / format / f"part={part}").mkdir(parents=True)
            (folder / format / f"part={part}" / f"a.{format}").write_text(lines)
    return folder


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[windrow.Client]:
    with embedded.client(folder / "state", allowed_locations=[str(folder)]) as client:
        for format, columns in FORMATS.items():
            options = {"columnNameOfCorruptRecord": "broken"} if format == "json" else {}
            client.register_table(
                format, str(folder / format), format, columns=columns, format_options=options
            )
            client.refresh(format)
        yield client


def texts(rows: DataFrame) -> list[str]:
    return sorted(map(str, rows.collect()))


def chosen(rows: DataFrame) -> DataFrame:
    """Return rows under conditions that are passed to Spark's readers; some settings say how."""
    return rows.where("amount >= 1 AND (text IS NOT NULL OR day > date'2020-02-01')")


def by_spark(session: SparkSession, folder: Path, format: str) -> DataFrame:
    schema = ", ".join(f"{name} {type_}" for name, type_ in FORMATS[format].items())
    reader = session.read.format(format).schema(f"{schema}, part int")
    if format == "json":
        reader = reader.option("columnNameOfCorruptRecord", "broken")
    return reader.load(str(folder / format))


def outcome(rows: DataFrame) -> list[str]:
    """Return the rows; or that there are none, because Spark refuses the value of a setting."""
    try:
        return texts(rows)
    except Exception as error:
        condition = getattr(error, "getCondition", lambda: None)()
        return [f"{type(error).__name__} {condition}"]


def other_values(spark: SparkSession, settings: list[str]) -> dict[str, str]:
    """Return what settings that are switches have not by default, as far as this Spark has them."""
    values = {}
    for name in settings:
        if not spark.conf.isModifiable(name):
            continue
        try:
            default = spark.conf.get(name)
        except Py4JJavaError:  # It has none.
            continue
        if default in ("true", "false"):
            values[name] = "false" if default == "true" else "true"
    return values


def readers(format: str) -> tuple[Reader, ...]:
    # Only Spark's own reader reads timestamps of ORC.
    return ("grouped", "native") if format == "parquet" else ("auto",)


@pytest.mark.parametrize("format", FORMATS)
def test_settings_without_effect_change_no_row_on_any_way(
    spark: SparkSession, client: windrow.Client, folder: Path, format: str
) -> None:
    switches = other_values(spark, listed(WITHOUT_EFFECT))
    assert len(switches) > 40
    usual = by_spark(spark, folder, format)
    plain, some = texts(usual), texts(chosen(usual))
    assert 0 < len(some) < len(plain)
    session = spark.newSession()
    for name, value in switches.items():
        session.conf.set(name, value)

    ways = [client.read(session, format, reader=reader) for reader in readers(format)]
    for rows in (by_spark(session, folder, format), *ways):
        assert texts(rows) == plain
        assert texts(chosen(rows)) == some


@pytest.mark.parametrize("format", ["csv", "json"])
def test_settings_of_lines_are_followed(
    spark: SparkSession, client: windrow.Client, folder: Path, format: str
) -> None:
    switches = other_values(spark, listed(FOLLOWED))
    policies = {
        "spark.sql.legacy.timeParserPolicy": "LEGACY",
        "spark.sql.session.timeZone": "Asia/Tokyo",
        "mapreduce.input.linerecordreader.line.maxlength": "50",
    }
    plain = outcome(by_spark(spark, folder, format))
    different = set()
    others = set(FORMATS) - {format}
    for name, value in (switches | policies).items():
        if not is_nightly() and any(f".{other}." in name for other in (*others, "avro")):
            continue
        session = spark.newSession()
        session.conf.set(name, value)
        rows = outcome(by_spark(session, folder, format))
        assert outcome(client.read(session, format)) == rows, name
        if rows != plain:
            different.add(name)
    assert different
