"""Random tables of ORC, with several writers and changing columns, are read as by Spark."""

from __future__ import annotations

import math
import string
import tempfile
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

import windrow
from tests.support.files.orc_files import write
from tests.support.laws import examples
from tests.support.servers import embedded
from tests.support.tables.published import cells
from windrow_core.files.formats import ORC
from windrow_service.inventory.build import take_inventory
from windrow_service.inventory.look import Look

pytestmark = pytest.mark.spark

TEXT = st.text(max_size=12) | st.sampled_from(["", "a", "A", " ", "é", "\U0001f600", "a" * 1_500])
FLOATS = st.floats(width=32) | st.sampled_from([0.0, -0.0, math.nan, math.inf, -math.inf])
SMALL = st.integers(-(2**7), 2**7 - 1)
DAYS = st.dates(date(1, 1, 1), date(9999, 12, 31)) | st.dates(date(1990, 1, 1), date(2030, 1, 1))
# Spark cannot read earlier times with fractions of a second as Arrow writes them.
TIMES = st.datetimes(datetime(1970, 1, 2), datetime(2200, 1, 1))  # noqa: DTZ001 - local times


def cents(digits: int) -> st.SearchStrategy[Decimal]:
    return st.integers(-(10**digits) + 1, 10**digits - 1).map(lambda value: Decimal(value) / 100)


Kind = tuple[pa.DataType, st.SearchStrategy[Any]]
STRUCTS: list[Kind] = [
    (
        pa.struct([("a", pa.int32()), ("B", pa.string())]),
        st.fixed_dictionaries({"a": st.none() | SMALL, "B": st.none() | TEXT}),
    ),
    (
        pa.struct([("b", pa.string()), ("A", pa.int64()), ("c", pa.date32())]),
        st.fixed_dictionaries({"b": TEXT, "A": SMALL, "c": st.none() | DAYS}),
    ),
]
# Each column, and the types that it may have in different files.
COLUMNS: dict[str, list[Kind]] = {
    "whole": [
        (pa.int8(), SMALL),
        (pa.int32(), st.integers(-(2**31), 2**31 - 1) | SMALL),
        (pa.int64(), st.integers(-(2**63), 2**63 - 1) | SMALL),
    ],
    "real": [(pa.float32(), FLOATS), (pa.float64(), st.floats() | FLOATS)],
    "money": [
        (pa.decimal128(9, 2), cents(9)),
        (pa.decimal128(20, 2), cents(20)),
        (pa.int32(), SMALL),
    ],
    "text": [(pa.string(), TEXT)],
    "blob": [(pa.binary(), st.binary(max_size=5))],
    "flag": [(pa.bool_(), st.booleans())],
    "day": [(pa.date32(), DAYS)],
    "at": [(pa.timestamp("ns"), TIMES)],
    "list": [
        (pa.list_(pa.int32()), st.lists(st.none() | SMALL, max_size=3)),
        (pa.list_(pa.int64()), st.lists(st.none() | SMALL, max_size=3)),
    ],
    "nest": STRUCTS,
    "map": [
        (
            pa.map_(pa.string(), pa.float64()),
            st.dictionaries(st.text(string.ascii_letters, max_size=3), FLOATS, max_size=3).map(
                lambda entries: list(entries.items())
            ),
        )
    ],
}
CODECS = ("uncompressed", "zlib", "snappy", "lz4", "zstd")
CONDITIONS = (
    "whole > 3",
    "whole = 5 OR text = 'a'",
    "real <= -0.0",
    "real > 1e300",
    "text >= 'a' AND text < 'b'",
    "money < 0 AND flag",
    "day < DATE'1500-01-01'",
    "day >= DATE'2000-01-01' OR real IS NULL",
    "blob = X'00'",
    "at > TIMESTAMP'2000-01-01 00:00:00'",
    "nest.a > 0",
)


@st.composite
def columns(draw: st.DrawFn) -> pa.Table:
    """Draw some rows of some columns, in some order and spelling."""
    count = draw(st.integers(0, 6))
    names = draw(st.permutations(draw(st.sets(st.sampled_from(sorted(COLUMNS))).map(sorted))))
    arrays = {}
    for name in names:
        type_, values = draw(st.sampled_from(COLUMNS[name]))
        drawn = draw(st.lists(st.none() | values, min_size=count, max_size=count))
        spelt = draw(st.sampled_from([name, name.upper(), name.title()]))
        arrays[spelt] = pa.array(drawn, type_)
    return pa.table(arrays) if arrays else pa.table({"Flag": pa.nulls(count, pa.bool_())})


@st.composite
def tables(draw: st.DrawFn) -> list[tuple[pa.Table, str, int]]:
    """Draw the content, codec and stripe size of each file; rows are numbered."""
    files = []
    row = 0
    for content in draw(st.lists(columns(), min_size=2, max_size=8)):
        numbers = pa.array(range(row, row + len(content)), pa.int64())
        row += len(content)
        numbered = content.append_column("row", numbers)
        codec, stripe = draw(st.sampled_from(CODECS)), draw(st.sampled_from([2**10, 2**26]))
        files.append((numbered, codec, stripe))
    return files


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[windrow.Client]:
    state = tmp_path_factory.mktemp("laws") / "state"
    with embedded.client(state, allowed_locations=[tempfile.gettempdir()]) as client:
        yield client


def rows_of(rows: DataFrame) -> dict[str, str]:
    table = rows.orderBy("row").toArrow()
    return {name.lower(): cells(table[name]) for name in table.column_names}


# Each example takes a dozen Spark jobs, and shrinking a failing one takes hundreds.
@examples(
    5,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(files=tables(), condition=st.sampled_from(CONDITIONS), by_spark=st.sampled_from(CODECS))
def test_every_reader_gives_the_cells_of_sparks_own_reader(
    spark: SparkSession,
    client: windrow.Client,
    files: list[tuple[pa.Table, str, int]],
    condition: str,
    by_spark: str,
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        location = Path(folder)
        for number, (content, codec, stripe) in enumerate(files):
            write(location, f"{number}.orc", content, compression=codec, stripe_size=stripe)
        # Spark's own writer writes the first file again, with other row numbers.
        first = files[0][0]
        again = first.set_column(
            first.num_columns - 1, "row", pa.array([-1 - n for n in range(len(first))], pa.int64())
        )
        frame = (
            spark.createDataFrame(again) if len(again) else spark.range(0).selectExpr("id AS row")
        )
        frame.coalesce(1).write.option("compression", by_spark).mode("append").orc(folder)
        client.register_table("law", folder, "orc", bloom_columns=["row"], replace=True)
        client.refresh("law", full=True)
        rows = client.read(spark, "law")
        own = spark.read.schema(rows.schema).orc(folder)
        held = {name.lower() for name in rows.columns}
        found = (
            take_inventory(Look(location=folder, file_format=ORC))
            .files["native_columns"]
            .to_pylist()
        )
        native = {name for names in found for name in names}

        expected = rows_of(own)
        assert rows_of(rows) == expected
        assert rows_of(client.read(spark, "law", reader="native")) == expected
        in_groups = [name for name in rows.columns if name.lower() not in native]
        if "row" in in_groups:
            grouped = rows_of(client.read(spark, "law", columns=in_groups, reader="grouped"))
            assert grouped == {name: expected[name] for name in grouped}
        for one in (condition, "row = 1 OR row = -1"):
            names = {name for name in COLUMNS if name in one}
            if names <= held:
                assert rows_of(rows.where(one)) == rows_of(own.where(one)), one
