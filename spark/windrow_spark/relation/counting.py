"""Counts of what tasks have read of their groups, added up by Spark for each plan."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Collection, Mapping
from weakref import WeakKeyDictionary

from pyspark import Accumulator, SparkContext
from pyspark.accumulators import AddingAccumulatorParam

from windrow_tables.executor.shipping import Count

Counts = Counter[tuple[str, str]]

# One for each application: Spark never frees an accumulator that Python made.
_counters: WeakKeyDictionary[SparkContext, Accumulator[Counts]] = WeakKeyDictionary()
_lock = threading.Lock()


def counter_of(context: SparkContext) -> Accumulator[Counts]:
    """Return the accumulator of an application, made when it is first needed."""
    with _lock:
        if context not in _counters:
            zero: Counts = Counter()
            _counters[context] = context.accumulator(Counter(), AddingAccumulatorParam(zero))
        return _counters[context]


def counted(counter: Accumulator[Counts], plan_id: str) -> Count:
    """Return a function with which tasks add to the counts of a plan."""

    def count(counts: Mapping[str, int]) -> None:
        counter.add(Counter({(plan_id, name): number for name, number in counts.items()}))

    return count


def counts_of(context: SparkContext, plan_id: str) -> Counter[str]:
    """Return the counts from the tasks of a plan's groups."""
    counts = counter_of(context).value.copy()
    return Counter({name: number for (of, name), number in counts.items() if of == plan_id})


def forget_others(context: SparkContext, plan_ids: Collection[str]) -> None:
    """Drop the counts of all other plans."""
    counts = counter_of(context).value
    for key in [key for key in counts.copy() if key[0] not in plan_ids]:
        del counts[key]
