"""Spark job: fetch a table's cacheable files into the caches of the workers chosen for them.

windrow cache warm sales.events --master spark://spark:7077 --url URL
spark-submit spark_jobs/windrow_jobs/warm.py sales.events --coordinator URL
python -m windrow_jobs.warm sales.events november --coordinator URL
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import typer
from pydantic import BaseModel
from pyspark import cloudpickle
from pyspark.sql import SparkSession

import windrow_core
from windrow_calls.coordinator import Coordinator
from windrow_calls.outcomes import Warmth
from windrow_calls.plans import SplitPlan
from windrow_calls.terminal.consoles import show, show_json
from windrow_calls.terminal.options import AsJson, TableName
from windrow_calls.terminal.render import drawn
from windrow_core.cards import count_text
from windrow_core.sizes import size_text
from windrow_jobs import warming
from windrow_jobs.errors import JobError
from windrow_jobs.reach import reach_of
from windrow_jobs.running import (
    CoordinatorUrl,
    SparkWhenNeeded,
    Tell,
    coordinator_of_command,
    now_and_then,
    telling,
)
from windrow_jobs.warming import Warmed, Warming
from windrow_spark.interpreter import collected
from windrow_spark.placement import placed, require_classic
from windrow_tables import executor, host_cache
from windrow_tables.groups.descriptors import descriptors_of

# Code that runs in tasks is sent along with them.
for module in (executor, windrow_core, warming, host_cache):
    cloudpickle.register_pickle_by_value(module)

# If Spark runs a task on another host, its own may have a free slot at the next attempt.
_ATTEMPTS = 3
_MAX_SHOWN_REASONS = 10
_LOCALITY_WAIT = "60s"

StartSpark = Callable[[], SparkSession]


def warm(
    start_spark: StartSpark,
    client: Coordinator,
    table: str,
    rule: str | None = None,
    on_progress: Tell = lambda _: None,
) -> Warmth:
    """Fetch the cacheable files that the workers do not hold yet; a second run has no work.

    Args:
        start_spark: Returns a classic session with executors on the workers' hosts; not called
            if the workers hold all files.
        client: Client of the coordinator that knows the table.
        table: Name of the table.
        rule: One of the table's rules; all by default.
        on_progress: Called with each step, and regularly with its progress.

    Raises:
        SparkConnectError: The session is one of Spark Connect.
        ProblemError: The coordinator refuses.
    """
    began_s = time.monotonic()
    filter_ = None if rule is None else client.cache_rule(table, rule).filter
    tree = filter_.model_dump(mode="json") if isinstance(filter_, BaseModel) else filter_
    plan = client.plan(table, filter=tree, cached_splits="by_worker")
    summary, groups = plan.summary, fetchable(plan)
    warmth = Warmth(
        table=table,
        rule=rule,
        cacheable_files=summary.cacheable_files,
        unplaced_files=summary.fallback_placements,
    )
    if summary.primary_placements + summary.secondary_placements:
        _fetch(start_spark(), plan, groups, warmth, on_progress)
    else:
        warmth.present_files = summary.cached_files
        warmth.present_bytes = pc.sum(_files(groups).field("size_bytes")).as_py() or 0
    warmth.seconds = time.monotonic() - began_s
    return warmth


def fetchable(plan: SplitPlan) -> pa.Table:
    """Return the groups that have a worker, with each of their files once."""
    groups = plan.groups.filter(pc.is_valid(plan.groups["cached_on"])).combine_chunks()
    lists = groups["splits"].combine_chunks()
    files = lists.flatten()
    first = pc.equal(files.field("start"), 0)
    parents = pc.list_parent_indices(lists).filter(first)
    counts = np.bincount(parents.to_numpy(), minlength=len(groups))
    ends = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    first_splits = pa.ListArray.from_arrays(pa.array(ends), files.filter(first))
    at = groups.schema.get_field_index("splits")
    return groups.set_column(at, "splits", first_splits).filter(pa.array(counts > 0))


def _files(groups: pa.Table) -> pa.StructArray:
    return groups["splits"].combine_chunks().flatten()


def _fetch(
    spark: SparkSession,
    plan: SplitPlan,
    groups: pa.Table,
    warmth: Warmth,
    on_progress: Tell,
) -> None:
    """Run tasks on the hosts of the groups' workers, and add up their outcomes."""
    require_classic(spark)
    context = spark.sparkContext
    file_count, size_bytes = context.accumulator(0), context.accumulator(0)

    def on_file(fetched_bytes: int) -> None:
        file_count.add(1)
        size_bytes.add(fetched_bytes)

    total = count_text(len(_files(groups)), "file")

    def tell() -> None:
        done = f"{file_count.value:,} of {total}"
        on_progress(f"{done} checked, {size_text(size_bytes.value)} fetched")

    work = Warming(plan.info.table, plan.info.location, on_file, plan.info.reading.is_logged)
    left = list(zip(groups["cached_on"].to_pylist(), descriptors_of(groups), strict=True))
    away: dict[str, list[Warmed]] = {}
    on_progress(f"{total}, workers: {len(pc.unique(groups['cached_on']))}")
    reach = reach_of(spark)
    for attempt in range(1, _ATTEMPTS + 1):
        with now_and_then(tell):
            tasks = placed(spark, [descriptor for _, descriptor in left], awaited=True)
            rows: list[tuple[Any, ...]] = collected(tasks.rdd.mapPartitionsWithIndex(work))
        reach, again = reach_of(spark), []
        for one in (Warmed(*row) for row in rows):
            warmth.fetched_files += one.fetched_files
            warmth.fetched_bytes += one.fetched_bytes
            warmth.present_files += one.present_files
            warmth.present_bytes += one.present_bytes
            warmth.failed_files += one.failed_files
            warmth.reasons += one.failures
            host, _ = left[one.task]
            if one.away is None:
                continue
            if attempt < _ATTEMPTS and reach.may_run_on(host):
                again.append(left[one.task])
            else:
                away.setdefault(host, []).append(one)
                warmth.elsewhere_files += one.file_count
        left = again
        if not left:
            break
        on_progress(f"repeating {count_text(len(left), 'task')} of other hosts")
    warmth.reasons += reach.reasons(away)
    del warmth.reasons[_MAX_SHOWN_REASONS:]


def run(
    table: str,
    client: Coordinator,
    rule: str | None = None,
    *,
    master: str | None = None,
    as_json: bool = False,
) -> None:
    """Run the job, starting Spark only if there is work, and print the outcome.

    Args:
        table: Name of the table.
        client: Client of the coordinator that knows the table.
        rule: One of the table's rules; all by default.
        master: Spark master; taken from Spark's configuration by default.
        as_json: Print only JSON on stdout.
    """
    # Files are cached only on the preferred host; by default Spark waits three seconds for it.
    conf = {"spark.locality.wait": _LOCALITY_WAIT}
    with SparkWhenNeeded(f"windrow cache warm {table}", master, conf) as start_spark:
        warmth = warm(start_spark, client, table, rule, telling(table, quiet=as_json))
    if as_json:
        show_json(asdict(warmth))
    else:
        show(drawn(warmth))
    counts = {
        "were seen only by other hosts": warmth.elsewhere_files,
        "could not be fetched or kept": warmth.failed_files,
    }
    failures = " and ".join(f"{count:,} {text}" for text, count in counts.items() if count)
    if failures:
        raise JobError(
            f"of the cacheable files of {table!r}, {failures}: {'; '.join(warmth.reasons)}; "
            "fetched files stay cached, and a later run fetches only the rest"
        )


def _main(
    table: TableName,
    coordinator: CoordinatorUrl,
    rule: Annotated[
        str | None, typer.Argument(help="One of the table's rules; all by default.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Fetch a table's cacheable files into the caches of the workers chosen for them."""
    with coordinator_of_command(coordinator) as client:
        run(table, client, rule, as_json=as_json)


if __name__ == "__main__":
    typer.run(_main)
