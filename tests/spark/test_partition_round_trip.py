"""Partition values are read back by Spark and Windrow exactly as they were written."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, example, given
from hypothesis import strategies as st
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

import windrow
from tests.support.laws import examples
from tests.support.servers import embedded
from windrow_spark.writing.errors import UnfitRowsError

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]

_TYPES = {
    "p_text": "string",
    "p_flag": "boolean",
    "p_tiny": "tinyint",
    "p_small": "smallint",
    "p_int": "int",
    "p_long": "bigint",
    "p_float": "float",
    "p_double": "double",
    "p_money": "decimal(9,2)",
    "p_wide": "decimal(38,18)",
    "p_day": "date",
    "p_at": "timestamp",
    "p_local": "timestamp_ntz",
    "p_bytes": "binary",
}
_SCHEMA = "id bigint, " + ", ".join(f"{name} {type_}" for name, type_ in _TYPES.items())
_ZONES = ("America/New_York", "Asia/Kathmandu", "UTC")


def _whole(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(1 << (bits - 1)), (1 << (bits - 1)) - 1)


def _utc(year: int, month: int, day: int, *time: int) -> datetime:
    return datetime(year, month, day, *time, tzinfo=timezone.utc)


def _local(year: int, month: int, day: int, *time: int) -> datetime:
    return _utc(year, month, day, *time).replace(tzinfo=None)


# Paths cannot hold NUL, and Java strings cannot hold lone surrogates.
_TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)
_LOCAL = st.datetimes(_local(1, 1, 1), _local(9999, 12, 31, 23, 59, 59, 999_999))
# Far enough from the limits to stay within Python's years in every zone.
_INSTANTS = st.datetimes(_local(1900, 1, 1), _local(9999, 12, 30), timezones=st.just(timezone.utc))
_ROWS = st.tuples(
    _TEXTS,
    st.booleans(),
    _whole(8),
    _whole(16),
    _whole(32),
    _whole(64),
    st.floats(width=32),
    st.floats(),
    st.decimals(-(10**7) + 1, 10**7 - 1, places=2, allow_nan=False, allow_infinity=False),
    st.integers(-(10**38) + 1, 10**38 - 1).map(lambda whole: Decimal(f"{whole}e-18")),
    st.dates(date(1, 1, 1), date(9999, 12, 31)),
    _INSTANTS,
    _LOCAL,
    st.text("abc +-._~é日", min_size=1, max_size=10).map(str.encode),
)


def _row(at: int, **values: Any) -> tuple[Any, ...]:
    plain = dict(zip(_TYPES, _PLAIN, strict=True))
    return tuple((plain | values)[name] for name in _TYPES)


_PLAIN = (
    "se", True, 1, 2, 3, 4, 0.5, 0.25, Decimal("1.50"), Decimal("1.5"),
    date(2026, 11, 1), _utc(2026, 11, 1), _local(2026, 11, 1), b"x",
)  # fmt: skip
_SPECIAL = [
    *(_row(0, p_text=text) for text in ("", " ", ".", "..", "_x", "a b ", "a/b=c:d", "%41", "%", "+")),
    *(_row(0, p_text=text) for text in ("\t\n\r\x7f", "\\{}[]^?*'\"#", "null", "NULL", "日本", "🎉", "A", "a", "é", "e\u0301")),
    *(_row(0, p_text="x", p_double=value, p_float=value) for value in (math.nan, math.inf, -math.inf, -0.0, 0.0, 1e10, 1e-10)),
    _row(0, p_double=5e-324, p_float=struct.unpack("f", b"\x01\0\0\0")[0]),
    _row(0, p_wide=Decimal(0), p_money=Decimal(0)),
    _row(0, p_wide=Decimal("1e-18"), p_money=Decimal("-0.01")),
    _row(0, p_wide=Decimal("-99999999999999999999.999999999999999999")),
    # The hour that occurs twice in New York.
    *(_row(0, p_at=_utc(2026, 11, 1, hour, 30), p_local=_local(2026, 11, 1, hour, 30)) for hour in (4, 5, 6, 7)),
    # The hour that does not occur there.
    _row(0, p_at=_utc(2026, 3, 8, 7, 0, 0, 250_000), p_local=_local(2026, 3, 8, 2, 30, 0, 1)),
    _row(0, p_at=_utc(1883, 11, 18, 12), p_day=date(1, 1, 1), p_local=_local(1, 1, 1)),
    _row(0, p_day=date(1582, 10, 10), p_at=_utc(1582, 10, 10), p_local=_local(1582, 10, 10)),
    _row(0, p_day=date(9999, 12, 31), p_at=_utc(9999, 12, 30), p_local=_local(9999, 12, 31)),
    tuple(None for _ in _TYPES),
]  # fmt: skip


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tables")


@pytest.fixture(scope="module")
def client(root: Path) -> Iterator[windrow.Client]:
    with embedded.client(root / "state", allowed_locations=[str(root)]) as client:
        yield client


@pytest.fixture
def zone(spark: SparkSession) -> Iterator[Callable[[str], None]]:
    name = "spark.sql.session.timeZone"
    before = spark.conf.get(name)
    yield lambda zone: spark.conf.set(name, zone)
    spark.conf.set(name, before)


def _comparable(rows: DataFrame) -> list[tuple[Any, ...]]:
    """Return rows as values that are equal exactly if Spark's are, in any session time zone."""
    shown = {
        "timestamp": lambda column: F.unix_micros(column),
        "binary": F.hex,
    }
    columns: list[Column] = [F.col("id")]
    for name, type_ in _TYPES.items():
        show = shown.get(type_, lambda column: column.cast("string"))
        columns.append(show(F.col(name)).alias(name))
    return sorted(tuple(row) for row in rows.select(columns).collect())


_number = iter(range(10**9))


@examples(
    2,
    # Not shrunk: each example is a whole write, and small enough to read if it fails.
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.data_too_large],
)
@given(st.lists(_ROWS, min_size=8, max_size=16))
@example(_SPECIAL)
def test_partition_values_of_every_type_survive_a_round_trip(
    spark: SparkSession,
    client: windrow.Client,
    root: Path,
    zone: Callable[[str], None],
    rows: list[tuple[Any, ...]],
) -> None:
    at = next(_number)
    name, location = f"kinds_{at}", root / f"kinds_{at}"
    location.mkdir()
    client.register_table(name, str(location), columns={"id": "bigint"}, partition_columns=_TYPES)
    zone(_ZONES[at % 3])
    numbered = [(number, *row) for number, row in enumerate(rows)]
    df = spark.createDataFrame(numbered, _SCHEMA)
    # Folder names represent an empty string as null.
    expected = _comparable(df.withColumn("p_text", F.expr("nullif(p_text, '')")))

    client.write(df, name, target_rows=100)

    zone(_ZONES[(at + 1) % 3])
    client.refresh(name, full=True)
    assert _comparable(client.read(spark, name)) == expected
    assert _comparable(spark.read.schema(_SCHEMA).parquet(str(location))) == expected


@pytest.mark.parametrize(
    ("type_", "value", "reason"),
    [
        (
            "timestamp",
            "timestamp_ntz'2026-11-01 01:30:00'",
            "'p' is timestamp_ntz, but timestamp in the table",
        ),
        ("timestamp", "date'2026-11-01'", "'p' is date, but timestamp in the table"),
        (
            "timestamp",
            "'2026-11-01 01:30:00'",
            "is not a value of partition column 'p'.* with an off",
        ),
        (
            "timestamp",
            "timestamp'+12026-11-01 01:30:00Z'",
            "is not a value of partition column 'p'",
        ),
        ("date", "timestamp'2026-11-01 01:30:00'", "'2026-11-01 01:30:00' is not a value"),
        ("INTEGER", "'1_000'", "'1_000' is not a value of partition column 'p', which is int"),
        ("string", "'__HIVE_DEFAULT_PARTITION__'", "means null"),
        ("string", "'a._COPYING_'", "ignore folders named"),
        ("string", "repeat('日', 90)", "longer than 255 bytes"),
        ("string", "concat('a', char(0))", "code 0"),
        ("string", "array(1)", "'p' is array<int>, but string in the table"),
        ("string", "interval '1' day", "'p' is interval day, but string in the table"),
        ("binary", "x'ff'", "not UTF-8 text"),
        ("binary", "x'25'", "other bytes"),
    ],
)
def test_a_value_that_could_not_be_read_back_is_refused_before_anything_is_staged(
    spark: SparkSession,
    client: windrow.Client,
    root: Path,
    type_: str,
    value: str,
    reason: str,
) -> None:
    name = f"refused_{next(_number)}"
    (root / name).mkdir()
    client.register_table(name, str(root / name), partition_columns={"p": type_})
    df = spark.range(1).selectExpr("id", f"{value} AS p")

    with pytest.raises(UnfitRowsError, match=reason):
        client.plan_write(df, name, target_rows=100)
