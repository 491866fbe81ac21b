"""`windrow policy …`: which tables are maintained, and how much that may use."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from typing import Annotated, Any

import typer
from rich.console import Group

from windrow.connecting import connect
from windrow_calls.terminal.consoles import show_result
from windrow_calls.terminal.options import (
    DEFAULT_URL,
    READERS_MAY_SEE_BOTH,
    AsJson,
    MinFiles,
    Url,
    byte_size,
    duration,
    policy_pattern,
)
from windrow_calls.terminal.render import drawn, drawn_list, message
from windrow_cli.arguments import TableName
from windrow_cli.groups import command_group
from windrow_cli.retention import confirm
from windrow_core.cards import card_of
from windrow_core.models import MAX_KEEP_DAYS

app = command_group("Choose which tables are maintained automatically, and how.")

# Options that change what is dropped.
_DROPPING = ("keep_days", "keep_by", "keep_zone", "keep_before", "may_drop_all")
_UNSET = {
    "target": "target_file_size",
    "min-files": "min_files",
    "min-gain": "min_gain",
    "reads-per-day": "reads_per_day",
    "min-age": "min_age_seconds",
    "window": "windows",
    "max-share": "max_share",
    "filter": "filter",
    "keep-days": "keep_days",
    "keep-by": "keep_by",
    "keep-zone": "keep_zone",
    "keep-before": "keep_before",
    "may-drop-all": "may_drop_all",
    "exempt": "exempt_folders",
    "readers-may-see-both": "readers_may_see_both",
}


def _percentage(text: str) -> float:
    match = re.fullmatch(r"([0-9]{1,3}(?:\.[0-9]{1,3})?)%", text.strip())
    share = float(match[1]) / 100 if match else 0.0
    if not 0 < share <= 1:
        raise typer.BadParameter(f"{text!r} is not a share from 0.001% to 100%, such as 25%")
    return share


def _unset_field(text: str) -> str:
    if text not in _UNSET:
        raise typer.BadParameter(f"{text!r} is not one of {', '.join(_UNSET)}")
    return text


Pattern = Annotated[
    str,
    typer.Argument(
        parser=policy_pattern,
        metavar="PATTERN",
        help="Tables: a name, 'sales.*' for all below a name, or '*' for all; in quotes.",
    ),
]


@app.command("set")
def set_policy(
    pattern: Pattern,
    enabled: Annotated[
        bool | None,
        typer.Option("--on/--off", help="Whether the tables are maintained; on by default."),
    ] = None,
    target: Annotated[
        int | None,
        typer.Option(
            parser=byte_size,
            help="Target size of a file, such as 256MB; 128MB by default.",
            metavar="SIZE",
        ),
    ] = None,
    min_files: MinFiles = None,
    min_gain: Annotated[
        float | None,
        typer.Option(
            help="Rewrite only where each second of rewriting is expected to save this many seconds "
            "of reading; 1 by default.",
            min=0,
            metavar="SECONDS",
        ),
    ] = None,
    reads_per_day: Annotated[
        float | None,
        typer.Option(
            help="Reads of each partition a day to expect at least, for tables that are also read "
            "without Windrow; 0 by default.",
            min=0,
            metavar="COUNT",
        ),
    ] = None,
    min_age: Annotated[
        timedelta | None,
        typer.Option(
            parser=duration,
            help="Leave partitions alone that were written to more recently than this, such as 1h; "
            "15m by default.",
            metavar="TIME",
        ),
    ] = None,
    window: Annotated[
        list[str] | None,
        typer.Option(
            help="When work may begin, such as 22:00-06:00 in UTC, or '22:00-06:00 Europe/Berlin'; "
            "repeatable; at any time by default.",
            metavar="WINDOW",
        ),
    ] = None,
    max_share: Annotated[
        float | None,
        typer.Option(
            parser=_percentage,
            help="Share of each hour's budget that one table may use, such as 25%; all by default.",
            metavar="SHARE",
        ),
    ] = None,
    filter_: Annotated[
        str | None,
        typer.Option(
            "--filter",
            help="Partitions to maintain, in SQL, such as \"ds >= '2026-11-01'\"; all by default.",
            metavar="SQL",
        ),
    ] = None,
    keep_days: Annotated[
        int | None,
        typer.Option(
            help="Drop partitions, with their files, whose day was more than this many days ago; all "
            "are kept by default. Asks first, unless --yes is given.",
            min=1,
            max=MAX_KEEP_DAYS,
            metavar="DAYS",
        ),
    ] = None,
    keep_by: Annotated[
        str | None,
        typer.Option(
            help="With --keep-days: the partition column with the day; by default the only one that "
            "has dates, which a text column has if every value is a whole date.",
            metavar="COLUMN",
        ),
    ] = None,
    keep_zone: Annotated[
        str | None,
        typer.Option(
            help="With --keep-days: time zone in which days begin, such as Europe/Berlin; UTC by "
            "default.",
            metavar="ZONE",
        ),
    ] = None,
    keep_before: Annotated[
        str | None,
        typer.Option(
            help="With --keep-days: keep days before this one, which stand for something else, such "
            "as 1970-01-01; 2000-01-02 by default, and 0001-01-01 keeps none of them.",
            metavar="DAY",
        ),
    ] = None,
    may_drop_all: Annotated[
        bool | None,
        typer.Option(
            help="With --keep-days: whether even the newest day of a table may be dropped.",
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Show which partitions would be dropped now, but change nothing."
        ),
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Do not ask whether partitions may be dropped.")
    ] = False,
    exempt: Annotated[
        list[str] | None,
        typer.Option(
            help="Folder of a partition to leave alone, such as ds=2026-11-01; repeatable. Replaces "
            "all folders that were exempt before.",
            metavar="FOLDER",
        ),
    ] = None,
    readers_may_see_both: Annotated[
        bool | None,
        typer.Option(
            help=READERS_MAY_SEE_BOTH,
        ),
    ] = None,
    unset: Annotated[
        list[str] | None,
        typer.Option(
            parser=_unset_field,
            help="Option that this policy no longer sets, such as window, so that less specific "
            "policies do; repeatable.",
            metavar="OPTION",
        ),
    ] = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Have tables maintained automatically, or change how.

    Options that are not given stay as they are. If several policies apply to a table, each option
    comes from the most specific policy that sets it.
    """
    options: dict[str, Any] = {
        "enabled": enabled,
        "target_file_size": target,
        "min_files": min_files,
        "min_gain": min_gain,
        "reads_per_day": reads_per_day,
        "min_age_seconds": None if min_age is None else int(min_age.total_seconds()),
        "windows": window or None,
        "max_share": max_share,
        "filter": filter_,
        "keep_days": keep_days,
        "keep_by": keep_by,
        "keep_zone": keep_zone,
        "keep_before": keep_before,
        "may_drop_all": may_drop_all,
        "exempt_folders": exempt or None,
        "readers_may_see_both": readers_may_see_both,
    }
    fields = dict.fromkeys((_UNSET[name] for name in unset or ()), None)
    fields |= {name: value for name, value in options.items() if value is not None}
    drops = any(fields.get(name) is not None for name in _DROPPING)
    with connect(url, check=False) as client:
        if dry_run or (drops and not yes):
            preview = client.preview_retention(pattern, **fields)
            if dry_run:
                show_result(preview, lambda: drawn(preview), as_json)
                return
            confirm(pattern, preview)
        policy = client.set_policy(pattern, **fields)
    show_result(
        policy,
        lambda: Group(
            drawn(policy), message("`windrow policy show TABLE` shows what decides about a table")
        ),
        as_json,
    )


@app.command("list")
def list_policies(url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """List policies."""
    with connect(url, check=False) as client:
        policies = client.policies()
    none = (
        "there are no policies, so nothing is maintained",
        "`windrow policy set PATTERN` adds one",
    )
    show_result({"policies": policies}, lambda: drawn_list(policies, *none), as_json)


@app.command("show")
def show_policy(table: TableName, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Show how a table is maintained, and which policies say so."""
    with connect(url, check=False) as client:
        maintenance = client.maintenance(table)
    card = replace(card_of(maintenance), grids=())
    show_result(maintenance, lambda: drawn(card), as_json)


@app.command()
def remove(pattern: Pattern, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Remove a policy; less specific ones then decide about its tables."""
    with connect(url, check=False) as client:
        client.remove_policy(pattern)
    show_result({"removed": pattern}, lambda: message(f"removed the policy for {pattern}"), as_json)


@app.command()
def budget(
    core_seconds: Annotated[
        float | None,
        typer.Option(
            help="Seconds of one core that maintenance may use in an hour: 3600 keeps one core busy, "
            "and 0 pauses all maintenance.",
            min=0,
            metavar="SECONDS",
        ),
    ] = None,
    bytes_: Annotated[
        int | None,
        typer.Option(
            "--bytes",
            parser=byte_size,
            help="Size of the small files that may be rewritten in an hour, such as 100GB; any size "
            "by default.",
            metavar="SIZE",
        ),
    ] = None,
    any_bytes: Annotated[
        bool, typer.Option("--any-bytes", help="Remove the limit of --bytes.")
    ] = False,
    pause: Annotated[
        bool | None,
        typer.Option(
            "--pause/--resume", help="Pause all maintenance, keeping the budget, or resume it."
        ),
    ] = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Show or change how much all maintenance together may use."""
    if bytes_ is not None and any_bytes:
        raise typer.BadParameter("--bytes and --any-bytes contradict each other: give only one")
    fields: dict[str, Any] = {}
    if core_seconds is not None:
        fields["core_seconds_per_hour"] = core_seconds
    if bytes_ is not None or any_bytes:
        fields["bytes_per_hour"] = bytes_
    if pause is not None:
        fields["pause"] = pause
    with connect(url, check=False) as client:
        limits = client.set_maintenance_budget(**fields) if fields else client.maintenance_budget()
    show_result(limits, lambda: drawn(limits), as_json)
