"""`windrow table import | snapshots | expire`: the versions of a table's inventory."""

from __future__ import annotations

from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import Annotated

import pyarrow as pa
import pyarrow.compute as pc
import typer

from windrow.cli.inventory_files import InventoryFileError, read_inventory
from windrow.connecting import connect
from windrow.terminal.consoles import show, show_json
from windrow.terminal.options import DEFAULT_URL, AsJson, TableName, Url
from windrow.terminal.render import message, publish_outcome, snapshot_list


def import_inventory(
    name: TableName,
    file: Annotated[
        Path,
        typer.Argument(
            help="Inventory: a .parquet, .arrow, .arrows, .csv or .jsonl file.", metavar="FILE"
        ),
    ],
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
            help="Publish only if the table is still at this version, or at snapshot-N.",
            metavar="VERSION",
        ),
    ] = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Publish an inventory from a file."""
    files = read_inventory(file)
    if not delta and "change" in files.column_names:
        raise typer.BadParameter(f"{file} has a column `change`: give --delta to apply it")
    with connect(url) as client:
        if delta:
            added, removed = _changes(file, files)
            published = client.publish_delta(name, added=added, removed=removed, if_match=if_match)
        else:
            published = client.publish(name, files, if_match=if_match)
    if as_json:
        show_json(published)
    else:
        show(publish_outcome(name, published))


def list_snapshots(
    name: TableName,
    limit: Annotated[int, typer.Option(help="Number of snapshots to show.", min=1)] = 20,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """List a table's snapshots, newest first."""
    with connect(url) as client:
        found = list(islice(client.snapshots(name), limit))
    if as_json:
        show_json({"snapshots": [one.model_dump(mode="json") for one in found]})
    else:
        show(snapshot_list(name, found))


def expire(
    name: TableName,
    keep_last: Annotated[
        int | None, typer.Option(help="Number of newest snapshots to keep.", min=1)
    ] = None,
    max_age_hours: Annotated[
        float | None, typer.Option(help="Keep all younger snapshots.", min=0, metavar="HOURS")
    ] = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Drop old snapshots.

    Recent ones stay, by number (--keep-last) and by age (--max-age-hours).
    """
    max_age = None if max_age_hours is None else timedelta(hours=max_age_hours)
    with connect(url) as client:
        gone = client.expire_snapshots(name, keep_last=keep_last, max_age=max_age)
    if as_json:
        show_json({"snapshot_ids": gone})
    else:
        show(message(f"{name}: {len(gone):,} snapshots dropped"))


def _changes(file: Path, files: pa.Table) -> tuple[pa.Table, pa.Array]:
    if "change" not in files.column_names:
        return files, pa.array([], pa.string())
    kinds = files["change"]
    if not pc.all(pc.is_in(kinds, value_set=pa.array(["added", "removed"]))).as_py():
        raise InventoryFileError(f"{file}: `change` must be added or removed in every row")
    rows = files.drop(["change"])
    removed = rows["path"].filter(pc.equal(kinds, "removed")).combine_chunks()
    return rows.filter(pc.equal(kinds, "added")), removed
