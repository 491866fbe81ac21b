"""`windrow cache …`: rules that mark files cacheable, and what they come to."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Annotated

import typer

from windrow.calls.caching import CacheSqlResult
from windrow.cli.cache_render import filter_text, rule_list, table_cache, time_text
from windrow.cli.options import (
    DEFAULT_URL,
    AsJson,
    Url,
    byte_size,
    duration,
    moment,
    table_name,
)
from windrow.connecting import connect
from windrow.demo.errors import MissingPackageError
from windrow.models import CacheRule
from windrow.terminal.consoles import show, show_json
from windrow.terminal.local_session import require_java
from windrow.terminal.render import message, size_text

app = typer.Typer(
    help="Say which files of tables workers keep on their disks, and see what they hold.",
    invoke_without_command=True,
)

TableName = Annotated[
    str, typer.Argument(parser=table_name, metavar="TABLE", help="Name of the table.")
]


@app.callback()
def _root(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command()
def add(
    table: TableName,
    where: Annotated[
        str,
        typer.Option(
            help="Which files, as SQL on partition columns: \"ds >= '2026-11-01'\".",
            metavar="FILTER",
        ),
    ],
    name: Annotated[
        str | None,
        typer.Option(help="Name of the rule; by default the same for the same filter."),
    ] = None,
    lasting: Annotated[
        timedelta | None,
        typer.Option("--for", parser=duration, help="How long, such as 7d.", metavar="TIME"),
    ] = None,
    until: Annotated[
        datetime | None,
        typer.Option(
            parser=moment,
            help="Until when, such as 2026-12-01 or 2026-12-01T06:00+01:00; UTC by default.",
            metavar="TIME",
        ),
    ] = None,
    max_bytes: Annotated[
        int | None,
        typer.Option(
            parser=byte_size,
            help="Most bytes that the rule makes cacheable, such as 500GB; the files last in the "
            "order of their paths come first.",
            metavar="SIZE",
        ),
    ] = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Mark files as cacheable, or change a rule of that name."""
    if lasting is not None and until is not None:
        raise typer.BadParameter("--for and --until both say when the rule ends: give one of them")
    ends = until if lasting is None else datetime.now(timezone.utc) + lasting
    with connect(url) as client:
        rule = client.cache_table(table, where, rule=name, expires_at=ends, max_bytes=max_bytes)
    if as_json:
        show_json(rule)
    else:
        show(message(_added(rule), f"`windrow cache show {table}` shows what it comes to"))


@app.command("list")
def list_rules(
    table: Annotated[
        str | None,
        typer.Argument(parser=table_name, metavar="[TABLE]", help="All tables by default."),
    ] = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """List cache rules."""
    with connect(url) as client:
        found = client.cache_rules(table)
    if as_json:
        show_json({"rules": [rule.model_dump(mode="json") for rule in found]})
    else:
        show(rule_list(found, table))


@app.command()
def drop(
    table: TableName,
    name: Annotated[
        str, typer.Argument(metavar="RULE", help="Name of the rule, as `list` shows it.")
    ],
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """End a cache rule; what workers hold by it makes room for other files in time."""
    with connect(url) as client:
        client.drop_cache(table, name)
    if as_json:
        show_json({"table": table, "dropped": name})
    else:
        show(message(f"{table}: rule {name} has ended"))


@app.command("show")
def show_cache(table: TableName, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Show what of a table is cacheable, by which rules, and which hosts hold it."""
    with connect(url) as client:
        found = client.cache(table)
    if as_json:
        show_json(found)
    else:
        show(table_cache(found))


@app.command()
def warm(
    table: TableName,
    rule: Annotated[
        str | None,
        typer.Argument(metavar="[RULE]", help="One of its rules; all of them by default."),
    ] = None,
    master: Annotated[
        str | None,
        typer.Option(help="Where Spark runs, with the workers' hosts.", metavar="MASTER"),
    ] = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Fetch a table's cacheable files into the caches of the workers that are to hold them.

    A Spark job, if there is work; what the workers hold already is not fetched again.
    """
    try:
        from windrow_jobs.warm import run
    except ImportError as error:
        raise MissingPackageError("pyspark", "spark") from error
    require_java()
    with connect(url) as client:
        run(table, client, rule, master=master, as_json=as_json)


@app.command()
def sql(
    text: Annotated[
        str,
        typer.Argument(
            metavar="SQL",
            help='"CACHE TABLE name WHERE …", "DROP CACHE name [WHERE …]" or "SHOW CACHE [name]".',
        ),
    ],
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Make, end and list cache rules in SQL."""
    with connect(url) as client:
        result = client.cache_sql(text)
    if as_json:
        rules = [rule.model_dump(mode="json") for rule in result.rules]
        show_json({"action": result.action, "table": result.table, "rules": rules})
    elif result.action == "show":
        show(rule_list(result.rules, result.table))
    else:
        show(message(_done(result)))


def _done(result: CacheSqlResult) -> str:
    if result.action == "cache":
        return "\n".join(map(_added, result.rules))
    if not result.rules:
        return f"{result.table} has no cache rules"
    names = ", ".join(rule.rule for rule in result.rules)
    return f"{result.table}: ended {names}"


def _added(rule: CacheRule) -> str:
    said = f"{rule.table}: rule {rule.rule} makes files cacheable where {filter_text(rule.filter)}"
    if rule.max_bytes is not None:
        said += f", at most {size_text(rule.max_bytes)}"
    return said if rule.expires_at is None else f"{said}, until {time_text(rule.expires_at)}"
