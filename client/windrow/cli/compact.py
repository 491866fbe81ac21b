"""`windrow compact`: merge the small files of a table, or show what that would change."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from windrow.cli.arguments import TableName
from windrow.cli.compaction_render import compaction_plan
from windrow.connecting import connect
from windrow.installed import MissingPackageError
from windrow.terminal.consoles import show_result
from windrow.terminal.java import require_java
from windrow.terminal.options import (
    DEFAULT_URL,
    AsJson,
    MaxBatchBytes,
    MinFiles,
    PartitionFilterText,
    ReadersMaySeeBoth,
    TargetSize,
    Url,
    WorthReads,
)


def compact(
    table: TableName,
    target_size: TargetSize = None,
    filter_: PartitionFilterText = None,
    min_files: MinFiles = None,
    worth_reads: WorthReads = None,
    max_batch_bytes: MaxBatchBytes = None,
    readers_may_see_both: ReadersMaySeeBoth = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be rewritten, but change nothing.")
    ] = False,
    master: Annotated[str | None, typer.Option(help="Spark master.", metavar="MASTER")] = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Merge small files of a table where that pays off.

    Runs a Spark job that rewrites them as fewer, larger files.
    """
    options: dict[str, Any] = {
        "target_file_size": target_size,
        "filter": filter_,
        "min_files": min_files,
        "worth_reads": worth_reads,
        "max_batch_bytes": max_batch_bytes,
    }
    settings = {name: value for name, value in options.items() if value is not None}
    if dry_run:
        with connect(url, check=False) as client:
            pages = list(client.plan_compaction(table, **settings))
        show_result({"pages": pages}, lambda: compaction_plan(pages), as_json)
        return
    try:
        from windrow_jobs.compact import run
    except ImportError as error:
        raise MissingPackageError("pyspark", "spark") from error
    require_java()
    with connect(url, check=False) as client:
        run(
            table,
            client,
            master=master,
            as_json=as_json,
            readers_may_see_both=readers_may_see_both,
            **settings,
        )
