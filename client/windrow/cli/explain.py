"""`windrow explain`: explain a plan, and compare it with other strategies."""

from __future__ import annotations

import re
from typing import Annotated, Any

import typer

from windrow.cli.explanation import explanation
from windrow.connecting import connect
from windrow.terminal.consoles import show, show_json
from windrow.terminal.options import (
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


def explain(
    what: Annotated[
        str,
        typer.Argument(
            parser=table_name,
            metavar="PLAN|NAME",
            help="Id of a plan, or name of a table to plan first.",
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
    """Explain a plan.

    Shows which files were pruned, why its groups are as they are, and what every other strategy
    would make of the same files.
    """
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
            f"{named}: the options of an existing plan cannot change; give the name of a table "
            "to make a new plan"
        )
    with connect(url) as client:
        plan_id = what if is_plan else client.plan(what, **asked).info.plan_id
        said = client.explain(plan_id)
    if as_json:
        show_json(said)
    else:
        show(explanation(said))
