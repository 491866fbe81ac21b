"""`windrow policy …`: which tables are maintained, and how much that may use."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

import typer
from rich.console import Group

from windrow.connecting import connect
from windrow_calls.terminal.consoles import show_result
from windrow_calls.terminal.fields import FieldsOf, with_fields
from windrow_calls.terminal.options import (
    DEFAULT_URL,
    AsJson,
    Url,
    policy_pattern,
)
from windrow_calls.terminal.render import drawn, drawn_list, message
from windrow_cli.arguments import TableName
from windrow_cli.groups import command_group
from windrow_cli.retention import confirm
from windrow_core.cards import card_of
from windrow_core.models import MaintenanceBudget, PolicyDefinition
from windrow_core.models.field_texts import POLICY_FIELDS, share_of

app = command_group("Choose which tables are maintained automatically, and how.")

_OPTIONS = {one.name: f"--{one.title.replace(' ', '-')}" for one in POLICY_FIELDS}
_UNSET = {option.removeprefix("--"): name for name, option in _OPTIONS.items()}


def _share(text: str) -> float:
    try:
        return share_of(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


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
@with_fields
def set_policy(
    pattern: Pattern,
    fields: Annotated[
        dict[str, Any],
        FieldsOf(
            PolicyDefinition,
            {"enabled": "--on/--off", **_OPTIONS},
            {
                "enabled": {"help": "Whether the tables are maintained; on by default."},
                "filter": {
                    "help": "Partitions to maintain, in SQL, such as \"ds >= '2026-11-01'\"; all by "
                    "default."
                },
                "min_gain": {"metavar": "SECONDS"},
                "reads_per_day": {"metavar": "COUNT"},
                "keep_days": {"metavar": "DAYS"},
                "keep_by": {"metavar": "COLUMN"},
                "keep_before": {"metavar": "DAY"},
                "max_share": {"parser": _share, "metavar": "SHARE"},
            },
        ),
    ],
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Show which partitions would be dropped now, but change nothing."
        ),
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Let partitions be dropped without asking.")
    ] = False,
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
    """Maintain tables automatically, or change how.

    Options that you leave out stay as they are; a repeatable option replaces all its earlier
    values. If several policies apply to a table, each option comes from the most specific policy
    that sets it. Before it lets partitions be dropped, shows which, and asks for confirmation.
    """
    fields |= dict.fromkeys((_UNSET[name] for name in unset or ()), None) | fields
    drops = any(fields.get(one.name) is not None for one in POLICY_FIELDS if one.of_retention)
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
@with_fields
def budget(
    fields: Annotated[
        dict[str, Any],
        FieldsOf(
            MaintenanceBudget,
            {
                "core_seconds_per_hour": "--core-seconds",
                "bytes_per_hour": "--bytes",
                "pause": "--pause/--resume",
            },
            {
                "core_seconds_per_hour": {
                    "help": "Seconds of one core that maintenance may use in an hour: 3600 keeps one "
                    "core busy, and 0 pauses all maintenance.",
                    "metavar": "SECONDS",
                },
                "bytes_per_hour": {
                    "help": "Size of the small files that may be rewritten in an hour, such as "
                    "100GB; any size by default."
                },
                "pause": {"help": "Pause all maintenance, keeping the budget, or resume it."},
            },
        ),
    ],
    any_bytes: Annotated[
        bool, typer.Option("--any-bytes", help="Remove the limit of --bytes.")
    ] = False,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Show or change how much all maintenance together may use."""
    if any_bytes:
        if "bytes_per_hour" in fields:
            raise typer.BadParameter("--bytes and --any-bytes contradict each other: give only one")
        fields["bytes_per_hour"] = None
    with connect(url, check=False) as client:
        limits = client.set_maintenance_budget(**fields) if fields else client.maintenance_budget()
    show_result(limits, lambda: drawn(limits), as_json)
