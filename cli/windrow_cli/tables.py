"""`windrow table …`: register, show, refresh and delete tables."""

from __future__ import annotations

import os
from typing import Annotated, Any, Literal

import typer

from windrow.client import Client
from windrow.connecting import connect
from windrow_calls.installed import MissingPackageError
from windrow_calls.terminal.consoles import error_console, show, show_json, show_result
from windrow_calls.terminal.java import require_java
from windrow_calls.terminal.options import (
    DEFAULT_URL,
    SPARK_MASTER,
    AsJson,
    PlanOptionTexts,
    Url,
    column_types,
    named_texts,
    names,
    plan_options,
    sort_column,
)
from windrow_calls.terminal.progress import refreshing
from windrow_calls.terminal.render import drawn, drawn_list, message
from windrow_cli import removal, snapshots
from windrow_cli.arguments import TableName
from windrow_cli.groups import command_group
from windrow_core.kinds.choice import OWN_KINDS
from windrow_core.models import RefreshStatus, TableFormat
from windrow_core.models.cards import plan_options_text

app = command_group("Register tables and manage their inventories.")


@app.command()
def register(
    name: TableName,
    location: Annotated[
        str,
        typer.Argument(
            help="Folder of the table, such as /data/events or s3://bucket/events.",
            metavar="LOCATION",
        ),
    ],
    format_: Annotated[
        TableFormat,
        typer.Option(
            "--format",
            help="Format of the files: parquet, orc, avro, csv, json or text; or of a table that keeps "
            f"a log of its files: {' or '.join(OWN_KINDS)}.",
            metavar="FORMAT",
        ),
    ] = "parquet",
    format_option: Annotated[
        list[str] | None,
        typer.Option(
            help="How Spark reads the files, such as header=true or sep=';' for csv; repeatable.",
            metavar="NAME=VALUE",
        ),
    ] = None,
    partition: Annotated[
        list[str] | None,
        typer.Option(
            help="Partition column and its type, such as ds:date, in the order of the folders; "
            "repeatable; by default, they are taken from the names of the folders.",
            metavar="NAME:TYPE",
        ),
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(
            help="Column and its type, such as id:bigint; repeatable; by default, the columns are "
            "taken from the files.",
            metavar="NAME:TYPE",
        ),
    ] = None,
    infer: Annotated[
        bool,
        typer.Option(
            "--infer",
            help="Infer the columns of csv or json files as Spark does, from all files, on this "
            "machine. Fails if only Spark can infer them.",
        ),
    ] = False,
    bucket_columns: Annotated[
        str | None,
        typer.Option(
            help="Columns that the table is bucketed by, such as id; needs --buckets.",
            metavar="NAME,…",
        ),
    ] = None,
    buckets: Annotated[
        int | None,
        typer.Option(help="Number of buckets; needs --bucket-columns.", min=1, metavar="COUNT"),
    ] = None,
    sort: Annotated[
        list[str] | None,
        typer.Option(
            help="Column that every file is sorted by, such as ts:desc or ts:desc:nulls-last; "
            "repeatable.",
            metavar="NAME[:desc]",
        ),
    ] = None,
    bloom: Annotated[
        str | None,
        typer.Option(
            help="Columns to build Bloom filters for at each refresh, such as id: with them, "
            "`id = 7` leaves out files.",
            metavar="NAME,…",
        ),
    ] = None,
    transactional: Annotated[
        Literal["full", "insert-only"] | None,
        typer.Option(help="For transactional (ACID) tables of Hive: their kind."),
    ] = None,
    option: PlanOptionTexts = None,
    trust_folder_times: Annotated[
        bool,
        typer.Option(
            "--trust-folder-times",
            help="Let refreshes skip folders whose time has not changed, for tables of millions of "
            "files that are never rewritten in place.",
        ),
    ] = False,
    replace: Annotated[
        bool,
        typer.Option(
            "--replace",
            help="Replace a table of this name at another location. Its snapshots and its list of "
            "partitions are dropped if they do not fit the new definition.",
        ),
    ] = False,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Register a table, or change its definition."""
    if (bucket_columns is None) != (buckets is None):
        raise typer.BadParameter("--bucket-columns and --buckets go together: give both")
    bucket_spec: dict[str, Any] | None = None
    if bucket_columns is not None:
        bucket_spec = {"columns": names(bucket_columns), "count": buckets}
    if infer and column:
        raise typer.BadParameter("--infer and --column both set the columns: give only one")
    where = location if ":/" in location else os.path.abspath(location)
    options = named_texts(format_option or [], "--format-option")
    columns = column_types(column or [], "--column")
    with connect(url, check=False) as client:
        if infer:
            from windrow.inferring import infer_columns

            most = client.config().limits.max_fields
            columns = infer_columns(where, format_, options, most)
        info = client.register_table(
            name,
            where,
            format_,
            format_options=options,
            transactional=transactional and transactional.replace("-", "_"),
            columns=columns,
            partition_columns=column_types(partition or [], "--partition"),
            bucket_spec=bucket_spec,
            sort_columns=[sort_column(text) for text in sort or []],
            bloom_columns=names(bloom) or [],
            plan_options=plan_options(option or []),
            trust_folder_times=trust_folder_times,
            replace=replace,
        )
    if as_json:
        show_json(info)
    else:
        where = info.definition.location
        absent = where.startswith("/") and not os.path.isdir(where)
        show(
            message(
                f"{info.name} is registered at {where}"
                + (", but there is no such folder on this machine" if absent else ""),
                None
                if info.current_snapshot
                or (
                    info.definition.columns is None
                    and info.definition.kind.files.must_be_told(info.definition.format_options)
                )
                else f"`windrow table refresh {info.name}` lists its files",
            )
        )


@app.command()
def alter(
    name: TableName,
    option: PlanOptionTexts = None,
    drop: Annotated[
        str | None,
        typer.Option(
            help="Plan options to remove, such as max_split_size; their defaults then apply.",
            metavar="NAME,…",
        ),
    ] = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Change the plan options of a table.

    Everything else stays, including its snapshot.
    """
    changes = dict.fromkeys(names(drop) or []) | plan_options(option or [])
    if not changes:
        raise typer.BadParameter("nothing to change: give --option NAME=VALUE or --drop NAME")
    with connect(url, check=False) as client:
        info = client.alter_table(name, plan_options=changes)
    options = plan_options_text(info.definition.plan_options) or "removed, so the defaults apply"
    show_result(info, lambda: message(f"{info.name}: plan options {options}"), as_json)


@app.command("list")
def list_tables(url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """List the registered tables."""
    with connect(url, check=False) as client:
        tables = list(client.tables())
    none = ("there are no tables yet", "`windrow table register NAME LOCATION` adds one")
    show_result({"tables": tables}, lambda: drawn_list(tables, *none), as_json)


@app.command("show")
def show_table(name: TableName, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Show a table's definition and current snapshot."""
    with connect(url, check=False) as client:
        info = client.table(name)
    show_result(info, lambda: drawn(info), as_json)


@app.command()
def refresh(
    name: TableName,
    full: Annotated[
        bool,
        typer.Option(
            "--full",
            help="Compare every file, also of a table that was registered with "
            "--trust-folder-times.",
        ),
    ] = False,
    valid_write_ids: Annotated[
        str | None,
        typer.Option(
            help="For transactional tables: the write ids to see, as Hive's metastore lists them "
            "(db.table:highest:least_open:open,…:aborted,…), or `on-disk`.",
            metavar="IDS",
        ),
    ] = None,
    version: Annotated[
        str | None,
        typer.Option(
            help="Version of a Delta table, or snapshot id, branch or tag of an Iceberg table: makes "
            "a snapshot of it beside the current one, for reads of that version.",
            metavar="VERSION",
        ),
    ] = None,
    cancel: Annotated[
        bool, typer.Option("--cancel", help="Stop the running refresh, whoever started it.")
    ] = False,
    on_spark: Annotated[
        bool,
        typer.Option(
            "--on-spark",
            help="List the files and read their footers on Spark's executors instead of the "
            "coordinator, for tables too large for one machine.",
        ),
    ] = False,
    master: Annotated[
        str | None,
        typer.Option(help=f"With --on-spark: {SPARK_MASTER}", metavar="MASTER"),
    ] = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Update a table's inventory from its files.

    Lists the files again, and publishes a new snapshot if something changed. Ctrl-C leaves the
    refresh running; the same command follows it again.
    """
    if cancel and (full or valid_write_ids or version):
        option = "--full" if full else "--valid-write-ids" if valid_write_ids else "--version"
        raise typer.BadParameter(f"--cancel stops a refresh and {option} starts one: give only one")
    if on_spark and (cancel or full or valid_write_ids or version):
        raise typer.BadParameter(
            "--on-spark always reads everything: leave out --cancel, --full, --valid-write-ids and "
            "--version"
        )
    if on_spark:
        _refresh_on_spark(name, url, master, as_json)
        return
    with connect(url, check=False) as client:
        status = (
            client.cancel_refresh(name)
            if cancel
            else _followed(client, name, full, valid_write_ids, version)
        )
    if as_json:
        show_json(status)
    elif status.status == "cancelled":
        show(message(f"the refresh of {name} is cancelled; nothing was published"))
    else:
        show(drawn(status))


def _refresh_on_spark(name: str, url: str, master: str | None, as_json: bool) -> None:
    try:
        from windrow_jobs.inventory import run
    except ImportError as error:
        raise MissingPackageError("pyspark", "spark") from error
    require_java()
    with connect(url, check=False) as client:
        run(name, client, master=master, as_json=as_json)


def _followed(
    client: Client, name: str, full: bool, write_ids: str | None, version: str | None
) -> RefreshStatus:
    try:
        with refreshing(error_console(), name) as on_progress:
            return client.refresh(
                name,
                full=full,
                valid_write_ids=write_ids,
                version=version,
                on_progress=on_progress,
            )
    except KeyboardInterrupt:
        typer.echo(
            f"the refresh of {name} continues: `windrow table refresh {name}` follows it, and "
            f"`windrow table refresh {name} --cancel` stops it",
            err=True,
        )
        raise


@app.command()
def protect(name: TableName, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Protect a table from deletion.

    It cannot be deleted, and its partitions and snapshots cannot be dropped.
    """
    with connect(url, check=False) as client:
        info = client.protect_table(name)
    show_result(
        info,
        lambda: message(
            f"{name} is protected from deletion",
            f"`windrow table unprotect {name}` ends the protection",
        ),
        as_json,
    )


@app.command()
def unprotect(name: TableName, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """End the protection of a table from deletion."""
    with connect(url, check=False) as client:
        info = client.unprotect_table(name)
    show_result(info, lambda: message(f"{name} is not protected from deletion"), as_json)


@app.command()
def delete(name: TableName, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Delete a table's registration; its files stay."""
    with connect(url, check=False) as client:
        client.delete_table(name)
    show_result(
        {"deleted": name},
        lambda: message(f"{name} is no longer registered; its files stay"),
        as_json,
    )


app.command("import")(snapshots.import_inventory)
app.command("sync")(snapshots.sync)
app.command("snapshots")(snapshots.list_snapshots)
app.command("expire")(snapshots.expire)
app.command("drop-partitions")(removal.drop_partitions)
