"""`windrow plan`: plan a read and show what it would be."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from windrow.cli.consoles import show, show_json
from windrow.cli.options import DEFAULT_URL, AsJson, TableName, Url, byte_size, names
from windrow.cli.render import plan_figures, plan_picture
from windrow.connecting import connect
from windrow.plans import SplitPlan


def plan(
    name: TableName,
    filter_: Annotated[
        str | None,
        typer.Option("--filter", help="Rows to keep, as SQL: \"ds >= '2026-11-01'\"."),
    ] = None,
    columns: Annotated[
        str | None, typer.Option(help="Columns to read; all by default.", metavar="NAME,…")
    ] = None,
    limit: Annotated[
        int | None, typer.Option(help="How many rows are enough.", min=1, metavar="ROWS")
    ] = None,
    parallelism: Annotated[
        int | None, typer.Option(help="Tasks that run at the same time.", min=1)
    ] = None,
    strategy: Annotated[
        str | None,
        typer.Option(help="How splits are packed: balanced, openlookeng, spark, iceberg or tez."),
    ] = None,
    max_split_size: Annotated[
        int | None,
        typer.Option(parser=byte_size, help="Most bytes in a group, such as 64MB.", metavar="SIZE"),
    ] = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Plan how to read a table: its split groups in figures, and as a picture."""
    given: dict[str, Any] = {
        "parallelism": parallelism,
        "strategy": strategy,
        "max_split_size": max_split_size,
    }
    with connect(url) as client:
        made = client.plan(
            name,
            filter=filter_,
            columns=names(columns),
            limit=limit,
            **{option: value for option, value in given.items() if value is not None},
        )
    if as_json:
        show_json(_as_json(made))
    else:
        show(plan_figures(made.info), plan_picture(made))


def _as_json(made: SplitPlan) -> dict[str, Any]:
    """Return a plan with its groups in figures; the splits themselves are a page away."""
    groups = made.groups.drop_columns(["splits"]).append_column(
        "split_count", [made.groups["splits"].combine_chunks().value_lengths()]
    )
    info = made.info.model_dump(mode="json", exclude={"groups", "next_page_token"})
    return info | {"groups": groups.to_pylist()}
