"""The law of packs with Spark's readers: by views and by accelerated queries, over random histories."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import windrow
from tests.property.test_pack_histories import STEPS, VALUES, History, World, world
from tests.support.laws import examples
from windrow.spark import recent_scans
from windrow_calls.plans import PlanCalls
from windrow_spark.errors import TaskFailedError
from windrow_spark.failures import plain_errors
from windrow_spark.relation.packed import SETTING

__all__ = ["world"]

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]

_ACCELERATE = "spark.windrow.accelerate"


class OnSpark(History):
    """A history whose questions Spark answers."""

    def __init__(self, world: World, types: tuple[str, str], spark: SparkSession) -> None:
        self.spark = spark
        super().__init__(world, types)

    def _rows(self, question: dict[str, Any], **more: Any) -> Counter[Any] | None:
        """Return rows of a view; None if a file has changed since the refresh."""
        self.spark.conf.set(SETTING, str(bool(more)).lower())
        try:
            return self._answer(question)
        except TaskFailedError as error:
            if error.kind != "UnreadablePackError":
                if self.known == self.files and not self._has_unseen():
                    raise
                return None
            # A task has found the damage: the next query reads the files.
            assert more
            return self._rows(question, **more)
        finally:
            self.spark.conf.unset(SETTING)

    def _has_unseen(self) -> bool:
        return any(len(rows) > 1 for rows in self.known.values())

    def _answer(self, question: dict[str, Any]) -> Counter[Any]:
        rows = self.client.read(self.spark, self.name)
        if "filter" in question:
            rows = rows.where(question["filter"])
        rows = rows.select(*question.get("columns", rows.columns))
        with plain_errors():
            answer = Counter(map(tuple, rows.collect()))
        scans = recent_scans(self.name)
        self.packs_read += scans[0].packed_files
        return answer

    def check_accelerated(self) -> None:
        """Compare a query of the folder, planned by Windrow, with Spark's own; nothing has changed."""
        schema = self.client.read(self.spark, self.name).schema
        answers = []
        for value in ("false", "true"):
            self.spark.conf.set(_ACCELERATE, value)
            rows = self.spark.read.schema(schema).parquet(str(self.location))
            answers.append(Counter(map(tuple, rows.collect())))
        self.spark.conf.unset(_ACCELERATE)
        assert answers[0] == answers[1]


@pytest.fixture(scope="module")
def accelerated(spark: SparkSession, world: World) -> Iterator[World]:
    with (
        pytest.MonkeyPatch.context() as patch,
        windrow.accelerate(spark, world.client, max_staleness=86_400, wait_s=60),
    ):
        # A query that has met a changed file would refresh the table before the next one.
        patch.setattr(PlanCalls, "look_again", lambda client, table: None)
        yield world


@examples(4)
@given(
    st.tuples(*[st.sampled_from(sorted(VALUES))] * 2),
    st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 99)), min_size=1, max_size=6),
)
def test_rows_with_packs_on_spark_are_those_of_the_files(
    spark: SparkSession, accelerated: World, types: tuple[str, str], steps: list[tuple[str, int]]
) -> None:
    history = OnSpark(accelerated, types, spark)
    for number, (kind, at) in enumerate([("pack", 0), *steps]):
        history.step(kind, at)
        history.check(at + number if number else 1)
    # Partition columns of times are those of sessions, which packs do not know.
    assert history.packs_read
    history.pack(0)
    history.check(-1)
    history.check_accelerated()
    accelerated.client.delete_table(history.name)
    shutil.rmtree(history.location)
