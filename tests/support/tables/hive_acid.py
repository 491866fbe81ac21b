"""Transactional tables that Hive's own classes write, compact and read.

PySpark's jars include the classes of Hive 2.3; `HiveTables.java` calls them.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tests.support.spark.quick_spark import java_object

NAMES = ("a", "b", "ts", "d")
TYPES = ("int", "string", "timestamp", "decimal(10,2)")
_NO_LIMIT = 2**63 - 1


def table_of_hive(spark: SparkSession, folder: Path) -> Any:
    """Return the JVM's `HiveTables` of a folder, with the columns `NAMES`."""
    return java_object(spark, "HiveTables").open(
        f"file://{folder}", ",".join(NAMES), ":".join(TYPES)
    )


def valid(highest: int, left_out: Sequence[int] = ()) -> str:
    """Return valid transactions as Hive 2.3 writes them; those left out are aborted."""
    exceptions = ":".join(map(str, sorted(left_out)))
    return f"{highest}:{_NO_LIMIT}:{exceptions}" + ("" if left_out else ":")


def rows_of(text: str) -> list[tuple[str, dict[str, Any]]]:
    """Return the rows in the output of `HiveTables.read`: the id and the values by name of each."""
    lines = (line.partition("\t") for line in text.splitlines())
    return [(row_id, json.loads(row, parse_float=Decimal)) for row_id, _, row in lines]


@dataclass
class History:
    """A random history of one partition, which Hive carries out step by step.

    Attributes:
        table: The result of `table_of_hive`.
        random: The source of its randomness.
        buckets: The number of buckets.
        highest: The last transaction.
        aborted: Transactions that were undone; their files stay.
    """

    table: Any
    random: random.Random
    buckets: int = 2
    highest: int = 0
    aborted: list[int] = field(default_factory=list)

    @property
    def valid(self) -> str:
        """The transactions that a reader sees."""
        return valid(self.highest, self.aborted)

    def go_on(self, steps: int) -> None:
        """Add transactions, compactions and cleanings."""
        for _ in range(steps):
            step = self.random.random()
            if step < 0.7 or not self.highest:
                self._write()
            elif step < 0.95:
                self.table.compact(self.valid, self.buckets, step > 0.85)
            else:
                self.table.clean(self.valid)

    def _write(self) -> None:
        live = rows_of(self.table.read(self.valid, self.buckets)) if self.highest else []
        self.random.shuffle(live)
        self.highest += 1
        for statement in range(self.random.choice((1, 1, 2))):
            events: dict[int, list[str]] = {}
            # Only the first statement inserts: Hive 2 would number rows of a later one the same.
            for _ in range(self.random.randint(0, 5) if statement == 0 else 0):
                bucket = self.random.randrange(self.buckets)
                events.setdefault(bucket, []).append(f"insert\t\t{self._values()}")
            # Rows of an earlier statement are left alone: Hive's own merger needs them in order.
            changes = sorted(
                (live.pop() for _ in range(self.random.randint(0, min(3, len(live))))),
                key=lambda row: tuple(map(int, row[0].split(","))),
            )
            for row_id, _ in changes:
                update = f"update\t{row_id}\t{self._values()}"
                is_update = statement == 0 and self.random.random() < 0.5
                what = update if is_update else f"delete\t{row_id}"
                events.setdefault(int(row_id.split(",")[1]), []).append(what)
            for bucket, lines in events.items():
                self.table.write(self.highest, statement, bucket, "\n".join(lines))
        if self.random.random() < 0.15:
            self.aborted.append(self.highest)

    def _values(self) -> str:
        some = self.random
        values: list[object] = [
            some.randint(-9, 9),
            some.choice(("x", "é", "", "long " * 9)),
            f"20{some.randint(10, 30)}-0{some.randint(1, 9)}-11 0{some.randint(0, 9)}:15:00.12345",
            Decimal(some.randint(-(10**5), 10**5)) / 100,
        ]
        return "\t".join("null" if some.random() < 0.15 else str(value) for value in values)
