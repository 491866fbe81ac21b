"""The counts of tasks, under the names of their plans."""

from __future__ import annotations

from typing import Any, cast

from pyspark import Accumulator, SparkContext

from windrow_spark.relation.counting import counted, counter_of, counts_of, forget_others


class Application:
    """The part of an application that counting needs."""

    def accumulator(self, value: Any, param: Any) -> Accumulator[Any]:
        return Accumulator(-1, value, param)


def test_counts_are_added_up_by_plan_and_forgotten_with_it() -> None:
    context = cast(SparkContext, Application())
    for plan, rows in (("one", 3), ("other", 5), ("one", 4)):
        counted(counter_of(context), plan)({"rows": rows, "files": 1})

    assert counts_of(context, "one") == {"rows": 7, "files": 2}
    assert counts_of(context, "other") == {"rows": 5, "files": 1}
    assert counts_of(context, "unknown") == {}
    forget_others(context, {"other"})
    assert set(counter_of(context).value) == {("other", "rows"), ("other", "files")}
