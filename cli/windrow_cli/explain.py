"""`windrow explain`: explain a plan, and compare it with other strategies."""

from __future__ import annotations

import re
from typing import Annotated, Any

import typer

from windrow.client import Client
from windrow.connecting import connect
from windrow_calls.errors import NotFoundError
from windrow_calls.terminal.consoles import show_result
from windrow_calls.terminal.fields import PLANNING, SharedOptions, planning_of, with_fields
from windrow_calls.terminal.options import DEFAULT_URL, AsJson, Url, table_name
from windrow_calls.terminal.render import drawn
from windrow_cli.arguments import tables
from windrow_cli.errors import CommandError


@with_fields
def explain(
    what: Annotated[
        str,
        typer.Argument(
            parser=table_name,
            metavar="PLAN|NAME",
            autocompletion=tables,
            help="Id of a plan, or its first eight digits; or name of a table to make a plan of.",
        ),
    ],
    fields: Annotated[dict[str, Any], SharedOptions(PLANNING)],
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Explain a plan.

    Shows which files were pruned, why each group was formed, how every other strategy would pack
    the same files, and whether request, session or table set each option.
    """
    with connect(url, check=False) as client:
        is_plan = _is_plan(client, what)
        if is_plan and fields:
            names_text = ", ".join(f"--{option.replace('_', '-')}" for option in fields)
            raise typer.BadParameter(
                f"{names_text}: the options of an existing plan cannot change; give the name of a "
                "table to make a new plan"
            )
        plan_id = what if is_plan else _new_plan(client, what, planning_of(fields))
        answer = client.explain(plan_id)
    show_result(answer, lambda: drawn(answer), as_json)


def _is_plan(client: Client, what: str) -> bool:
    """Return whether a text is a plan's id or its first digits; a table may be called like these."""
    if not _DIGITS.fullmatch(what):
        return False
    return len(what) == _ID_DIGITS or any(client.past_plans(plan_id=what))


def _new_plan(client: Client, table: str, options: dict[str, Any]) -> str:
    """Return the id of a new plan of a table."""
    try:
        return client.plan(table, **options).info.plan_id
    except NotFoundError as error:
        if error.problem.type != _NO_TABLE or not _DIGITS.fullmatch(table):
            raise
        raise CommandError(
            f"no plan has an id that begins with {table}, and no table has this name: "
            "`windrow history` lists plans"
        ) from error


_DIGITS = re.compile("[0-9a-f]{8,32}")
_ID_DIGITS = 32
_NO_TABLE = "urn:windrow:problem:table-not-found"
