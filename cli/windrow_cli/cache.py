"""`windrow cache …`: rules that mark files as cacheable, and their effect."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from typing import Annotated

import typer
from rich.console import RenderableType

from windrow.client import Client
from windrow.connecting import connect
from windrow_calls.cache_rules import CacheSqlResult
from windrow_calls.errors import ProblemError
from windrow_calls.installed import MissingPackageError
from windrow_calls.terminal.consoles import show, show_json, show_result
from windrow_calls.terminal.java import require_java
from windrow_calls.terminal.options import (
    DEFAULT_URL,
    AsJson,
    Url,
    byte_size,
    duration,
    moment,
    table_name,
)
from windrow_calls.terminal.render import drawn, drawn_list, message
from windrow_cli.arguments import rules, tables
from windrow_cli.groups import command_group
from windrow_core.cards import count_text, moment_text
from windrow_core.filter_text import filter_text
from windrow_core.models import CacheRule
from windrow_core.sizes import size_text

# Below this size, a task of its own costs more than reading a file.
TASK_BYTES = 16 * 2**20

app = command_group("Choose the files that workers cache, and see what they hold.")

TableName = Annotated[
    str,
    typer.Argument(
        parser=table_name, metavar="TABLE", help="Name of the table.", autocompletion=tables
    ),
]


@app.command()
def add(
    table: TableName,
    where: Annotated[
        str,
        typer.Option(
            help="Files to cache, in SQL on partition columns, such as \"ds >= '2026-11-01'\".",
            metavar="SQL",
        ),
    ],
    name: Annotated[
        str | None,
        typer.Option(
            help="Name of the rule, such as november; by default made from the filter.",
            metavar="RULE",
        ),
    ] = None,
    lasting: Annotated[
        timedelta | None,
        typer.Option(
            "--for",
            parser=duration,
            help="How long the rule lasts, such as 7d; until it is dropped by default.",
            metavar="TIME",
        ),
    ] = None,
    until: Annotated[
        datetime | None,
        typer.Option(
            parser=moment,
            help="When the rule ends, instead of --for: 2026-12-01 or 2026-12-01T06:00+01:00; UTC by "
            "default.",
            metavar="TIME",
        ),
    ] = None,
    max_bytes: Annotated[
        int | None,
        typer.Option(
            parser=byte_size,
            help="Maximum size of the files that the rule makes cacheable, such as 500GB; those whose "
            "paths sort last are chosen first.",
            metavar="SIZE",
        ),
    ] = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Add a rule that makes files cacheable, or change it."""
    if lasting is not None and until is not None:
        raise typer.BadParameter("--for and --until both set the end of the rule: give only one")
    ends = until if lasting is None else datetime.now(timezone.utc) + lasting
    with connect(url, check=False) as client:
        rule = client.cache_table(table, where, rule=name, expires_at=ends, max_bytes=max_bytes)
        remarks = [] if as_json else _remarks(client, table)
    effect = f"`windrow cache show {table}` shows its effect"
    show_result(rule, lambda: message(_added(rule), "\n".join([*remarks, effect])), as_json)


@app.command("list")
def list_rules(
    table: Annotated[
        str | None,
        typer.Argument(
            parser=table_name,
            metavar="TABLE",
            help="Only rules of this table.",
            autocompletion=tables,
        ),
    ] = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """List cache rules."""
    with connect(url, check=False) as client:
        of_table = client.cache_rules(table)
    show_result({"rules": of_table}, lambda: _rule_list(of_table, table), as_json)


@app.command()
def drop(
    table: TableName,
    name: Annotated[
        str,
        typer.Argument(
            metavar="RULE",
            help="Name of the rule, from `windrow cache list`.",
            autocompletion=rules,
        ),
    ],
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Drop a cache rule.

    Workers keep the files that it made cacheable until they need the room for others.
    """
    with connect(url, check=False) as client:
        client.drop_cache(table, name)
    show_result(
        {"table": table, "dropped": name}, lambda: message(f"{table}: dropped rule {name}"), as_json
    )


@app.command("show")
def show_cache(table: TableName, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Show a table's cacheable files and the workers that cache them."""
    with connect(url, check=False) as client:
        contents = client.cache(table)
    show_result(contents, lambda: drawn(contents), as_json)


@app.command()
def warm(
    table: TableName,
    rule: Annotated[
        str | None,
        typer.Argument(
            metavar="RULE",
            help="One of the table's rules; all by default.",
            autocompletion=rules,
        ),
    ] = None,
    master: Annotated[
        str | None,
        typer.Option(
            help="Spark master of a cluster that includes the workers' hosts, such as "
            "spark://host:7077; by default that of Spark's configuration.",
            metavar="MASTER",
        ),
    ] = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Fill the caches with a table's cacheable files.

    Each worker fetches the files that it should hold and does not have yet. This runs a Spark
    job unless there is nothing to fetch.
    """
    try:
        from windrow_jobs.warm import run
    except ImportError as error:
        raise MissingPackageError("pyspark", "spark") from error
    require_java()
    with connect(url, check=False) as client:
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
    """Add, drop and list cache rules in SQL."""
    with connect(url, check=False) as client:
        result = client.cache_sql(text)
    if as_json:
        dumps = [rule.model_dump(mode="json") for rule in result.rules]
        show_json({"action": result.action, "table": result.table, "rules": dumps})
    elif result.action == "show":
        show(_rule_list(result.rules, result.table))
    else:
        show(message(_done(result)))


def _rule_list(rules: Sequence[CacheRule], table: str | None) -> RenderableType:
    has = f"{table} has no cache rules" if table else "no table has cache rules"
    return drawn_list(rules, has, f"`windrow cache add {table or 'TABLE'} --where …` adds one")


def _done(result: CacheSqlResult) -> str:
    if result.action == "cache":
        return "\n".join(map(_added, result.rules))
    if not result.rules:
        return f"{result.table} has no cache rules"
    names = ", ".join(rule.rule for rule in result.rules)
    return f"{result.table}: dropped {names}"


def _remarks(client: Client, table: str) -> list[str]:
    """Return why reads of a table with cache rules gain nothing, or become slower."""
    definition = client.table(table).definition
    remarks = []
    if definition.location.startswith("/"):
        remarks.append(
            f"if {definition.location} is on the hosts' own disks, reads become slower: a cache "
            "pays off for storage behind a network"
        )
    try:
        contents = client.cache(table)
    except ProblemError:
        # Nothing is known of a table without a snapshot.
        return remarks
    if not contents.workers:
        remarks.append(
            "no worker is running, so nothing is cached: `windrow worker run` starts one"
        )
    files = contents.cacheable_files
    mean_bytes = contents.cacheable_bytes / max(files, 1)
    if definition.plan_options.cached_splits == "separate" and files and mean_bytes < TASK_BYTES:
        remarks.append(
            f"the table's cached_splits=separate makes a task of each file "
            f"({count_text(files, 'file')}, {size_text(mean_bytes)} on average), so reads become "
            f"slower: `windrow table alter {table} --drop cached_splits` combines them"
        )
    return remarks


def _added(rule: CacheRule) -> str:
    text = f"{rule.table}: rule {rule.rule} makes files cacheable where {filter_text(rule.filter)}"
    if rule.max_bytes is not None:
        text += f", at most {size_text(rule.max_bytes)}"
    return text if rule.expires_at is None else f"{text}, until {moment_text(rule.expires_at)}"
