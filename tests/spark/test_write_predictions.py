"""Predicted collisions equal those of a real Spark job, in every Spark partition."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.support.laws import is_nightly
from windrow_service.inventory.spark_types import arrow_type
from windrow_service.planner.writes.keys import WriteKeys
from windrow_service.planner.writes.murmur3 import hash_columns, hash_int, partition_of
from windrow_service.planner.writes.schemes import salted

_SALTS = 2
# The time is that of all tasks, whose number grows with the scale.
SCALES = range(1, 21) if is_nightly() else (1, 2, 3, 5, 8, 13, 20)
_DAY = datetime.date(2018, 1, 1)

# Few keys, as there is a task for each key, salt and scale.
KEYS: dict[str, tuple[str, Sequence[Any]]] = {
    "string": ("string", [None, "", "å", *(f"2018-01-{day:02}" for day in range(1, 8))]),
    "int": ("int", [None, 0, -1, 2**31 - 1, -(2**31), *range(20180101, 20180106)]),
    "long": ("bigint", [None, 0, -1, 2**63 - 1, -(2**63), *range(2**40, 2**40 + 5)]),
    "date": (
        "date",
        [None, datetime.date(1969, 12, 31), *(_DAY + datetime.timedelta(day) for day in range(8))],
    ),
}

HASHED: dict[str, Sequence[Any]] = {
    "boolean": [True, False, None],
    "tinyint": [-128, 5, None],
    "smallint": [-(2**15), 7, None],
    "float": [-0.0, 0.0, float("nan"), 1.5, None],
    "double": [-0.0, float("nan"), float("-inf"), -1.1, None],
    "decimal(18,3)": [Decimal("-1.234"), Decimal("999999999999999.999"), None],
    "decimal(38,2)": [Decimal("-1.28"), Decimal("1.28"), Decimal(0), Decimal("9" * 36), None],
    "string": ["", "a", "abc", "abcd", "abcde", "日本語x", "\U0001f600", None],
    "timestamp": [datetime.datetime(2018, 1, 1, 3, tzinfo=datetime.timezone.utc), None],
}


@pytest.mark.parametrize("kind", KEYS)
def test_rows_go_to_the_predicted_tasks_at_every_scale(spark: SparkSession, kind: str) -> None:
    type_, values = KEYS[kind]
    rows = spark.createDataFrame(
        [(at, value, salt) for at, value in enumerate(values) for salt in range(_SALTS)],
        f"key int, part {type_}, salt int",
    ).coalesce(1).cache()  # fmt: skip
    hashes = hash_columns([pa.array(values, arrow_type(type_))], len(values))
    many = np.full(len(values), 10**9, np.int64)
    keys = WriteKeys.of(many, np.full(len(values), float(_SALTS)), None, hashes)
    number, salt = np.divmod(np.arange(len(values) * _SALTS), _SALTS)

    counts = {scale: len(values) * _SALTS * scale for scale in SCALES}
    # The actual tasks of rows after each shuffle, not those computed by a hash function.
    shuffled = [
        rows.repartition(counts[scale], "part", "salt")
        .select(F.lit(scale).alias("scale"), "key", "salt", F.spark_partition_id().alias("task"))
        # One task fetches all of them in turn, without the cost of starting each by itself.
        .coalesce(1)
        for scale in SCALES
    ]
    placed = reduce(DataFrame.unionAll, shuffled).toPandas().sort_values(["key", "salt"])

    for scale, count in counts.items():
        tasks = placed["task"][placed["scale"] == scale].tolist()
        expected = partition_of(hash_int(salt, hashes[number]), count)
        assert tasks == expected.tolist()

        outcome = salted(keys, _SALTS, scale)
        held = Counter(tasks)
        assert outcome.tasks == count
        assert round(outcome.efficiency * len(number)) == len(held)
        assert round(outcome.collisions * len(held)) == sum(one > 1 for one in held.values())
        assert round(outcome.severe * len(held)) == sum(one > 2 for one in held.values())
        assert outcome.most_keys == max(held.values())
    rows.unpersist()


@pytest.mark.parametrize("type_", HASHED)
def test_every_type_hashes_as_on_spark(spark: SparkSession, type_: str) -> None:
    values = HASHED[type_]
    numbers = range(len(values))
    frame = spark.createDataFrame(
        list(zip(numbers, values, strict=True)), f"number int, part {type_}"
    )

    # Hashed twice, so that not every value meets the initial seed.
    spark_hashes = frame.select("number", F.hash("part", "number", "part").alias("hash")).collect()

    column = pa.array(values, arrow_type(type_))
    hashes = hash_columns([column, pa.array(numbers, pa.int32()), column], len(values))
    assert dict(spark_hashes) == dict(enumerate(hashes.view(np.int32).tolist()))
