"""Both readers give the same rows of pages whose values are stated by what they share."""

from __future__ import annotations

import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.support.laws import a_few
from tests.support.servers import embedded

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]

# More than one of Spark's batches of 4,096 rows.
ROWS = 9_000
COLUMNS = ("text", "bytes", "wide", "narrow")


def _rows() -> pa.Table:
    chance = random.Random(1)

    def some(value: Any) -> Any:
        return value if chance.random() < 0.9 else None

    numbers = [Decimal(chance.randrange(-(10**15), 10**15)).scaleb(-2) for _ in range(ROWS)]
    return pa.table(
        {
            "id": range(ROWS),
            "text": [some(f"a shared prefix {at:06d}{'x' * (at % 9)}") for at in range(ROWS)],
            "bytes": [some(chance.randbytes(at % 6)) for at in range(ROWS)],
            "wide": pa.array([some(one * 10**15) for one in numbers], pa.decimal128(38, 2)),
            "narrow": pa.array([some(one) for one in numbers], pa.decimal128(18, 2)),
        }
    )


@pytest.mark.parametrize("compression", a_few(["snappy", "none"], 2))
@pytest.mark.parametrize("page", ["1.0", "2.0"])
def test_delta_byte_arrays_are_the_same_with_both_readers(
    spark: SparkSession, tmp_path: Path, compression: str, page: str
) -> None:
    rows = _rows()
    (tmp_path / "t").mkdir()
    pq.write_table(
        rows,
        tmp_path / "t/1.parquet",
        use_dictionary=False,
        column_encoding=dict.fromkeys(COLUMNS, "DELTA_BYTE_ARRAY") | {"id": "PLAIN"},
        compression=compression,
        data_page_version=page,
        data_page_size=1024,
        write_page_index=True,
    )
    with embedded.client(tmp_path / "state", allowed_locations=[str(tmp_path)]) as client:
        client.register_table("pages.t", str(tmp_path / "t"))
        client.refresh("pages.t")

        grouped, native = (
            client.read(spark, "pages.t", reader=reader) for reader in ("grouped", "native")
        )

        # The second condition has Spark's reader skip pages.
        for condition in ("true", "id IN (3, 4095, 4096, 5000, 8999)"):
            assert _digest(native.where(condition)) == _digest(grouped.where(condition))
        assert native.orderBy("id").select(*COLUMNS).toArrow().equals(rows.select(COLUMNS))


def _digest(rows: DataFrame) -> list[Any]:
    sums = [F.sum(F.xxhash64("id", name).cast("decimal(38,0)")) for name in COLUMNS]
    return list(rows.agg(F.count("*"), *sums).collect()[0])
