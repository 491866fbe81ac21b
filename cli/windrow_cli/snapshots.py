"""`windrow table import | snapshots | expire`: the versions of a table's inventory."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import pyarrow.compute as pc
import typer
from rich.console import RenderableType

from windrow.connecting import connect
from windrow_calls.installed import MissingPackageError
from windrow_calls.terminal.consoles import show_result
from windrow_calls.terminal.fields import ImportFields, SyncFields, importing_of, with_fields
from windrow_calls.terminal.java import require_java
from windrow_calls.terminal.options import (
    DEFAULT_URL,
    SPARK_MASTER,
    AsJson,
    Master,
    Url,
    table_name,
)
from windrow_calls.terminal.render import drawn_list, message
from windrow_cli.arguments import TableName
from windrow_cli.errors import CommandError
from windrow_core.cards import count_text
from windrow_core.models import PublishedSnapshot
from windrow_core.models.cards import snapshot_text
from windrow_core.sizes import size_text


@with_fields
def import_inventory(
    name: Annotated[str | None, typer.Argument(help="Name of the table.", metavar="TABLE")] = None,
    file: Annotated[
        Path | None,
        typer.Argument(
            help="Inventory of the table: a .parquet, .arrow, .arrows, .csv or .jsonl file with a "
            "row for each data file.",
            metavar="FILE",
        ),
    ] = None,
    hive: Annotated[
        list[str] | None,
        typer.Option(
            help="Instead of an inventory: tables of Hive's metastore to register, with their "
            "partitions, such as 'sales.*'; repeatable.",
            metavar="TABLES",
        ),
    ] = None,
    *,
    fields: ImportFields,
    master: Annotated[
        str | None, typer.Option(help=f"With --hive: {SPARK_MASTER}", metavar="MASTER")
    ] = None,
    delta: Annotated[
        bool,
        typer.Option(
            "--delta",
            help="The file holds only changes. Its column `change` says added or removed; without "
            "that column, all files are added.",
        ),
    ] = False,
    if_match: Annotated[
        str | None,
        typer.Option(
            "--if-match",
            help="Publish only if the table has not changed since: its ETag, or the name of its "
            "current snapshot, such as snapshot-7.",
            metavar="ETAG",
        ),
    ] = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Import an inventory from a file, or tables from Hive.

    With TABLE and FILE, publishes the rows of the file as the table's new inventory. With --hive,
    registers tables of Hive's metastore.
    """
    if hive:
        if name is not None or delta or if_match is not None:
            raise typer.BadParameter(
                "--hive names the tables: leave out TABLE, FILE and their options"
            )
        _import_from_metastore(hive, fields, url, master, as_json)
        return
    if name is None or file is None:
        raise typer.BadParameter("give TABLE and FILE of an inventory, or --hive 'sales.*'")
    table_name(name)
    files = read_inventory(file)
    if not delta and "change" in files.column_names:
        raise typer.BadParameter(f"{file} has a column `change`: give --delta to apply it")
    with connect(url, check=False) as client:
        if delta:
            rows, paths = _changes(file, files)
            snapshot = client.publish_delta(name, added=rows, removed=paths, if_match=if_match)
        else:
            snapshot = client.publish(name, files, if_match=if_match)
    show_result(snapshot, lambda: _publication(name, snapshot), as_json)


def _publication(table: str, snapshot: PublishedSnapshot) -> RenderableType:
    text = (
        f"{table}: {count_text(snapshot.files_added, 'file')} added, {snapshot.files_removed:,} "
        f"removed; {count_text(snapshot.manifests_written, 'manifest')} written, "
        f"{snapshot.manifests_reused:,} kept, {size_text(snapshot.bytes_written)}"
    )
    return message(text, f"snapshot {snapshot_text(snapshot)}")


@with_fields
def sync(
    tables: Annotated[
        list[str],
        typer.Argument(help="Tables of Hive's metastore, such as 'sales.*'.", metavar="TABLES…"),
    ],
    fields: SyncFields,
    master: Master = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Import tables of Hive's metastore, and refresh them.

    For schedulers: exits with 1 if a table failed. Tables that cannot be read are listed with the
    reason.
    """
    _import_from_metastore(tables, fields, url, master, as_json)


def _import_from_metastore(
    tables: list[str], fields: Mapping[str, Any], url: str, master: str | None, as_json: bool
) -> None:
    arguments = importing_of(fields)
    try:
        from windrow_jobs.sync import run
    except ImportError as error:
        raise MissingPackageError("pyspark", "spark") from error
    require_java()
    with connect(url, check=False) as client:
        fine = run(tables, client, master=master, as_json=as_json, **arguments)
    if not fine:
        raise typer.Exit(1)


def list_snapshots(
    name: TableName,
    limit: Annotated[
        int, typer.Option(help="Number of snapshots to show.", min=1, metavar="COUNT")
    ] = 20,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """List a table's snapshots, newest first."""
    with connect(url, check=False) as client:
        snapshots = list(islice(client.snapshots(name), limit))
    none = (f"{name} has no snapshot yet", f"`windrow table refresh {name}` makes one")
    show_result({"snapshots": snapshots}, lambda: drawn_list(snapshots, *none), as_json)


def expire(
    name: TableName,
    keep_last: Annotated[
        int | None,
        typer.Option(
            help="Number of newest snapshots to keep; the coordinator's setting by default.",
            min=1,
            metavar="COUNT",
        ),
    ] = None,
    max_age_hours: Annotated[
        float | None,
        typer.Option(
            help=(
                "Keep all snapshots that are younger, such as 48; the coordinator's setting by "
                "default."
            ),
            min=0,
            metavar="HOURS",
        ),
    ] = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Drop old snapshots.

    Keeps the newest snapshots, and young ones. The data files of the table stay.
    """
    max_age = None if max_age_hours is None else timedelta(hours=max_age_hours)
    with connect(url, check=False) as client:
        ids = client.expire_snapshots(name, keep_last=keep_last, max_age=max_age)
    show_result(
        {"snapshot_ids": ids},
        lambda: message(f"{name}: {count_text(len(ids), 'snapshot')} dropped"),
        as_json,
    )


def _changes(file: Path, files: pa.Table) -> tuple[pa.Table, pa.Array]:
    if "change" not in files.column_names:
        return files, pa.array([], pa.string())
    kinds = files["change"]
    if not pc.all(pc.is_in(kinds, value_set=pa.array(["added", "removed"]))).as_py():
        raise CommandError(f"{file}: `change` must be added or removed in every row")
    rows = files.drop(["change"])
    paths = rows["path"].filter(pc.equal(kinds, "removed")).combine_chunks()
    return rows.filter(pc.equal(kinds, "added")), paths


_BETWEEN_HOSTS = ";"


def read_inventory(path: Path) -> pa.Table:
    """Return the rows of an inventory file; the suffix gives its format.

    In CSV, hosts are joined with `;`.
    """
    try:
        with path.open("rb") as file:
            return _read(path.suffix.lower(), file)
    except (OSError, pa.ArrowException) as error:
        raise CommandError(f"{path} cannot be read: {error}") from error


def _read(suffix: str, file: object) -> pa.Table:
    # Each import takes a while, and only one of them is needed.
    if suffix == ".parquet":
        from pyarrow import parquet

        return parquet.read_table(file)
    if suffix in (".arrow", ".feather"):
        return pa.ipc.open_file(file).read_all()
    if suffix == ".arrows":
        return pa.ipc.open_stream(file).read_all()
    if suffix == ".csv":
        from pyarrow import csv

        return _split_hosts(csv.read_csv(file))
    if suffix in (".jsonl", ".ndjson"):
        from pyarrow import json

        return json.read_json(file)
    raise CommandError(
        f"unknown suffix {suffix!r} of an inventory file: name it .parquet, .arrow, .arrows, .csv "
        "or .jsonl"
    )


def _split_hosts(files: pa.Table) -> pa.Table:
    at = files.schema.get_field_index("hosts")
    if at < 0:
        return files
    text = files["hosts"].cast(pa.string()).fill_null("")
    hosts = pc.if_else(
        pc.equal(text, ""),
        pa.scalar([], pa.list_(pa.string())),
        pc.split_pattern(text, _BETWEEN_HOSTS),
    )
    return files.set_column(at, "hosts", hosts)
