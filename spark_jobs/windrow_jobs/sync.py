"""Spark job: import the tables of a metastore, and keep them up to date.

spark-submit spark_jobs/windrow_jobs/sync.py 'sales.*' 'shop.*' --coordinator URL
python -m windrow_jobs.sync 'sales.*' --metastore thrift://metastore:9083 --coordinator URL
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Annotated, Literal

import typer
from pyspark.sql import SparkSession
from rich.console import Group, RenderableType
from rich.text import Text

from windrow_calls.coordinator import Coordinator
from windrow_calls.terminal.consoles import show, show_json
from windrow_calls.terminal.fields import SyncFields, importing_of, with_fields
from windrow_calls.terminal.listings import ListTable
from windrow_calls.terminal.options import AsJson
from windrow_calls.terminal.render import message
from windrow_jobs.errors import UnfitTableError
from windrow_jobs.inventory import publish_inventory
from windrow_jobs.running import CoordinatorUrl, SparkWhenNeeded, coordinator_of_command, telling
from windrow_spark.catalog.importing import ImportedTable, import_tables

_NO_SETTINGS: Mapping[str, str] = {}


def run(
    patterns: Sequence[str],
    client: Coordinator,
    *,
    refresh: Literal["changed", "all", "none"] = "all",
    on_spark: bool = False,
    trust_partitions: bool = False,
    take_over: bool = False,
    delete_vanished: bool = False,
    metastore: str | None = None,
    settings: Mapping[str, str] = _NO_SETTINGS,
    master: str | None = None,
    as_json: bool = False,
) -> bool:
    """Start Spark with its metastore, import tables, and print what was done with each.

    Args:
        patterns: Names of tables, such as `sales.*`.
        client: Client of the coordinator.
        refresh: Which tables get a new inventory; see `windrow.Client.import_tables`.
        on_spark: Whether Spark's executors take the inventories that the inventory job can take.
        trust_partitions: Whether known partitions are assumed not to have moved.
        take_over: Whether to replace tables that were registered in another way.
        delete_vanished: Whether to delete registrations of tables that the metastore no longer has.
        metastore: URI of a remote metastore; taken from Spark's configuration by default.
        settings: Further settings of Spark.
        master: Spark master; taken from Spark's configuration by default.
        as_json: Print only JSON on stdout.

    Returns:
        Whether no table failed. A table that cannot be read does not count as failed.
    """
    tell = telling("import", quiet=as_json)
    conf = {"spark.sql.catalogImplementation": "hive", **settings}
    if metastore is not None:
        conf["spark.hadoop.hive.metastore.uris"] = metastore
    with SparkWhenNeeded(f"windrow sync {' '.join(patterns)}", master, conf) as start_spark:
        spark = start_spark()
        done = import_tables(
            spark,
            client,
            patterns,
            refresh=refresh,
            refresh_with=partial(refresh_on_executors, spark, client) if on_spark else None,
            trust_partitions=trust_partitions,
            take_over=take_over,
            delete_vanished=delete_vanished,
            on_table=lambda one: tell(f"{one.name}: {one.outcome}"),
        )
    if as_json:
        show_json({"tables": [asdict(one) for one in done]})
    else:
        show(_outcome(done, patterns))
    return all(one.outcome != "failed" for one in done)


def refresh_on_executors(spark: SparkSession, client: Coordinator, name: str) -> bool:
    """Take a table's inventory on the executors, or else by a refresh.

    Returns:
        Whether the executors took it.
    """
    try:
        publish_inventory(spark, client, name)
    except UnfitTableError:
        client.refresh(name)
        return False
    return True


def _outcome(done: Sequence[ImportedTable], patterns: Sequence[str]) -> RenderableType:
    if not done:
        return message(f"the catalog has no table like {' or '.join(patterns)}")
    rows = ListTable(("table…", "outcome", "what…"))
    for one in done:
        # An unchanged table needs no attention.
        if one.outcome != "unchanged" or one.notes:
            what = "; ".join(filter(None, [one.reason, ", ".join(one.changes), *one.notes]))
            rows.add_row(Text(one.name), one.outcome, Text(what))
    counts = Counter(one.outcome for one in done)
    totals = ", ".join(f"{count:,} {outcome}" for outcome, count in counts.items())
    return Group(rows, Text(totals)) if rows.row_count else Text(f"tables: {totals}")


@with_fields
def _main(
    tables: Annotated[list[str], typer.Argument(help="Tables, such as 'sales.*'.")],
    coordinator: CoordinatorUrl,
    fields: SyncFields,
    as_json: AsJson = False,
) -> None:
    """Import the tables of a metastore and refresh them; exit with 1 if one of them failed."""
    with coordinator_of_command(coordinator) as client:
        fine = run(tables, client, as_json=as_json, **importing_of(fields))
    if not fine:
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(_main)
