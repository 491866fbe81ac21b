"""`windrow explain`: say why a plan is as it is, and what other strategies would make of it."""

from __future__ import annotations

import re
from typing import Annotated, Any

import typer

from windrow.cli.explanation import explanation
from windrow.cli.options import (
    DEFAULT_URL,
    AsJson,
    ColumnNames,
    FilterText,
    Limit,
    MaxSplitSize,
    Parallelism,
    Strategy,
    Url,
    names,
    table_name,
)
from windrow.connecting import connect
from windrow.terminal.consoles import show, show_json


def explain(
    what: Annotated[
        str,
        typer.Argument(
            parser=table_name,
            metavar="PLAN|NAME",
            help="Id of a plan, or name of a table; a table is planned first.",
        ),
    ],
    filter_: FilterText = None,
    columns: ColumnNames = None,
    limit: Limit = None,
    parallelism: Parallelism = None,
    strategy: Strategy = None,
    max_split_size: MaxSplitSize = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Say why a plan is as it is: what was pruned, its groups, and every other strategy."""
    given: dict[str, Any] = {
        "filter": filter_,
        "columns": names(columns),
        "limit": limit,
        "parallelism": parallelism,
        "strategy": strategy,
        "max_split_size": max_split_size,
    }
    asked = {option: value for option, value in given.items() if value is not None}
    is_plan = re.fullmatch("[0-9a-f]{32}", what) is not None
    if is_plan and asked:
        named = ", ".join(f"--{option.replace('_', '-')}" for option in asked)
        raise typer.BadParameter(
            f"{named}: a plan that is made already keeps its own; name a table to plan it anew"
        )
    with connect(url) as client:
        plan_id = what if is_plan else client.plan(what, **asked).info.plan_id
        said = client.explain(plan_id)
    if as_json:
        show_json(said)
    else:
        show(explanation(said))
