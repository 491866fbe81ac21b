"""Options that several commands share, and the parsing of their values."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import typer

from windrow_core.planning import StrategyName
from windrow_core.sizes import parse_duration, parse_size

DEFAULT_URL = "http://127.0.0.1:8080"
*_OTHER_STRATEGIES, _LAST_STRATEGY = get_args(StrategyName)
_DAYS_AGO = {"today": 0, "yesterday": 1}


def table_name(text: str) -> str:
    """Return a valid table name unchanged."""
    # Imported here because only commands about tables need the wire models.
    from windrow_core.models import TABLE_NAME_PATTERN

    if not re.fullmatch(TABLE_NAME_PATTERN, text):
        raise typer.BadParameter(
            f"{text!r} is not a table name: use letters, digits, '_' and '-', with up to two dots, "
            "such as sales.events"
        )
    return text


def policy_pattern(text: str) -> str:
    """Return a valid pattern of table names unchanged."""
    # Imported here because only commands about tables need the wire models.
    from windrow_core.models import POLICY_PATTERN

    if not re.fullmatch(POLICY_PATTERN, text):
        raise typer.BadParameter(
            f"{text!r} names no tables: use a name such as sales.events, one that ends in '.*' for "
            "all below it, or '*' in quotes"
        )
    return text


def strategies(incomplete: str) -> list[str]:
    """Return the names of packing strategies that begin with a text."""
    return [name for name in get_args(StrategyName) if name.startswith(incomplete)]


def byte_size(text: str) -> int:
    """Return the number of bytes in a size such as `64MB`."""
    try:
        size = parse_size(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    assert isinstance(size, int)
    return size


def duration(text: str) -> timedelta:
    """Return the duration in a text such as `90d`."""
    try:
        return timedelta(seconds=parse_duration(text))
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def past_moment(text: str) -> datetime:
    """Return the time in a text such as `2026-12-01`, `yesterday` (in UTC) or `7d` (ago)."""
    now = datetime.now(timezone.utc)
    if text in _DAYS_AGO:
        midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
        return midnight - timedelta(days=_DAYS_AGO[text])
    if re.fullmatch("[0-9]{1,6}[mhdw]", text):
        return now - duration(text)
    return moment(text, ", yesterday or 7d")


def moment(text: str, others: str = "") -> datetime:
    """Return the time in a text such as `2026-12-01` or `2026-12-01T06:00+01:00`; UTC by default."""
    try:
        # Python 3.10 does not accept a trailing Z.
        time = datetime.fromisoformat(re.sub("[zZ]$", "+00:00", text.strip()))
    except ValueError:
        raise typer.BadParameter(
            f"{text!r} is not a time such as 2026-12-01 or 2026-12-01T06:00+01:00{others}"
        ) from None
    return time if time.tzinfo is not None else time.replace(tzinfo=timezone.utc)


def column_types(texts: list[str], option: str) -> dict[str, str] | None:
    """Return types by name from the `name:type` texts of an option; None when there are none."""
    columns: dict[str, str] = {}
    for text in texts:
        name, _, type_ = text.partition(":")
        if not name.strip() or not type_.strip():
            raise typer.BadParameter(
                f"{text!r} is not NAME:TYPE, such as ds:date", param_hint=f"'{option}'"
            )
        columns[name.strip()] = type_.strip()
    return columns or None


def sort_column(text: str) -> dict[str, Any]:
    """Return a sort column from `name[:asc|desc][:nulls-first|nulls-last]`."""
    name, *words = (part.strip() for part in text.split(":"))
    column: dict[str, Any] = {"name": name}
    for word in words:
        if word in ("asc", "desc") and "descending" not in column:
            column["descending"] = word == "desc"
        elif word in ("nulls-first", "nulls-last") and "nulls_first" not in column:
            column["nulls_first"] = word == "nulls-first"
        else:
            column = {}
            break
    if not column.get("name"):
        raise typer.BadParameter(
            f"{text!r} is not NAME[:asc|desc][:nulls-first|nulls-last], such as ts:desc",
            param_hint="'--sort'",
        )
    return column


def plan_options(texts: list[str]) -> dict[str, Any]:
    """Return plan options from `name=value` texts."""
    # Imported here because only commands that set options need the wire models.
    from windrow_calls.arguments import values_of_texts

    options: dict[str, str] = {}
    for text in texts:
        name, _, value = text.partition("=")
        if not name.strip() or not value.strip():
            raise typer.BadParameter(
                f"{text!r} is not NAME=VALUE, such as max_split_size=128MB",
                param_hint="'--option'",
            )
        options[name.strip().replace("-", "_")] = value
    return values_of_texts(options)


def named_texts(texts: list[str], option: str) -> dict[str, str]:
    """Return values by name from the `name=value` texts of an option.

    A value may be empty, and is used as given.
    """
    values: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not name.strip() or not equals:
            raise typer.BadParameter(
                f"{text!r} is not NAME=VALUE, such as header=true", param_hint=f"'{option}'"
            )
        values[name.strip()] = value
    return values


def names(text: str | None) -> list[str] | None:
    """Return the names in a text such as `a,b`; None stays None."""
    if text is None:
        return None
    return [name.strip() for name in text.split(",") if name.strip()]


Url = Annotated[
    str,
    typer.Option("--url", envvar="WINDROW_URL", help="URL of the coordinator.", metavar="URL"),
]
StateDir = Annotated[
    Path | None,
    typer.Option(help="Folder of the embedded database; .windrow by default.", metavar="DIR"),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print only the result, as JSON, on stdout.")]
FilterText = Annotated[
    str | None,
    typer.Option(
        "--filter", help="Rows to read, in SQL, such as \"ds >= '2026-11-01'\".", metavar="SQL"
    ),
]
ColumnNames = Annotated[
    str | None,
    typer.Option(
        "--columns", help="Columns to read, such as id,amount; all by default.", metavar="NAME,…"
    ),
]
Limit = Annotated[
    int | None,
    typer.Option(
        "--limit",
        help="Plan only enough files for this many rows; for all rows by default.",
        min=1,
        metavar="ROWS",
    ),
]
PlanOptionTexts = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        help="Default of a plan option for this table, such as max_split_size=128MB; repeatable.",
        metavar="NAME=VALUE",
    ),
]
Parallelism = Annotated[
    int | None,
    typer.Option(
        "--parallelism",
        help="Number of tasks that run at once, such as the cores of a cluster.",
        min=1,
        metavar="TASKS",
    ),
]
Strategy = Annotated[
    StrategyName | None,
    typer.Option(
        "--strategy",
        help=f"How files are packed into groups: {', '.join(_OTHER_STRATEGIES)} or "
        f"{_LAST_STRATEGY}; by default as the table says, or else balanced.",
        autocompletion=strategies,
        metavar="STRATEGY",
    ),
]
MaxSplitSize = Annotated[
    int | None,
    typer.Option(
        "--max-split-size",
        parser=byte_size,
        help="Maximum size of a group, such as 128MB; by default as the table says, or else 64MB.",
        metavar="SIZE",
    ),
]
TableName = Annotated[
    str, typer.Argument(parser=table_name, metavar="NAME", help="Name of the table.")
]

SPARK_MASTER = (
    "Spark master, such as spark://host:7077 or local[4]; by default that of Spark's configuration."
)
Master = Annotated[str | None, typer.Option("--master", help=SPARK_MASTER, metavar="MASTER")]
VersionOfTable = Annotated[
    str | None,
    typer.Option(
        "--version",
        help="Version of a Delta table, or snapshot id, branch or tag of an Iceberg table, such as "
        "12 or main; run `windrow table refresh --version` for it first.",
        metavar="VERSION",
    ),
]

# Options of imports from a metastore.
Metastore = Annotated[
    str | None,
    typer.Option(
        help="URI of a remote metastore, such as thrift://metastore:9083; Spark's configuration "
        "names it by default.",
        metavar="URI",
    ),
]
SparkSettings = Annotated[
    list[str] | None,
    typer.Option(
        "--conf",
        help="Setting of Spark, such as spark.executor.memory=4g; repeatable.",
        metavar="NAME=VALUE",
    ),
]
RefreshedTables = Annotated[
    Literal["changed", "all", "none"],
    typer.Option(
        help="Which tables get a new inventory: tables that are new or changed in the metastore, "
        "all or none."
    ),
]
RefreshOnSpark = Annotated[
    bool,
    typer.Option(
        "--on-spark",
        help="Let Spark's executors take the inventories where they can; the coordinator takes the "
        "others.",
    ),
]
TrustPartitions = Annotated[
    bool,
    typer.Option(
        "--trust-partitions",
        help="Ask the metastore only for the names of partitions; assume that known ones have not "
        "moved.",
    ),
]
TakeOver = Annotated[
    bool,
    typer.Option(
        "--take-over", help="Replace tables of the same name that were registered in another way."
    ),
]
DeleteVanished = Annotated[
    bool,
    typer.Option(
        "--delete-vanished",
        help="Delete the registration of imported tables that the metastore no longer has.",
    ),
]

# Options of maintenance.
MaintainedTables = Annotated[
    str,
    typer.Option(
        "--tables",
        parser=policy_pattern,
        help="Work only on these tables, such as 'sales.*'.",
        metavar="PATTERN",
    ),
]
Once = Annotated[
    bool,
    typer.Option(
        "--once",
        help="Do the work that is due, then exit; by default, wait for more until stopped.",
    ),
]
LeaseSeconds = Annotated[
    int,
    typer.Option(
        help="Time without a heartbeat after which another worker gets a worker's work.",
        min=5,
        max=3600,
        metavar="SECONDS",
    ),
]
