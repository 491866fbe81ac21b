"""What commands print of the answers in the story of `/docs`: at four widths, and in a pipe."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from rich.console import Group, RenderableType

from windrow_calls.outcomes import Compaction
from windrow_calls.terminal.consoles import show
from windrow_calls.terminal.render import drawn, drawn_list, picture
from windrow_cli.rows_render import as_table
from windrow_cli.writes import stream_list
from windrow_core import models
from windrow_service.api import examples

_STORY = json.loads((Path(examples.__file__).parent / "examples.json").read_text())
# Changes of definitions, newest first: what was changed, how, and the values of its fields.
_CHANGES: list[tuple[tuple[str, str | None, str], list[tuple[str, str | None, str | None]]]] = [
    (
        ("cache_rule", "recent", "changed"),
        [("filter", "ds > '2026-11-01'", "ds > '2026-11-08'"), ("max_bytes", None, "1048576")],
    ),
    (("table", None, "changed"), [("location", "/data/old", "/data/new")]),
    (
        ("table", None, "created"),
        [("location", None, "/data/old"), ("partition_columns", None, "ds date")],
    ),
]
_ROWS = pa.table(
    {
        "id": [1, 20, 300],
        "amount": [90.5, None, -3.25],
        "note": [
            "two words",
            "",
            "a text that is far longer than others, and so has to be wrapped",
        ],
    }
)
_COMPACTION = Compaction(
    table="sales.events",
    batches=1,
    partitions=3,
    files_before=6,
    files_after=3,
    bytes_before=5_600,
    bytes_after=4_100,
    rows=120,
    left={"ds=2026-11-04": "its files differ in their columns"},
    seconds=12.3,
)
_WIDTHS = ("60", "80", "120", "200", "")


def text() -> str:
    """Return each output at each width; without a width, it goes into a pipe."""
    blocks = [
        f"--- {name}, {f'{width} columns' if width else 'in a pipe'} ---\n{_printed(output, width)}"
        for name, output in _outputs()
        for width in _WIDTHS
    ]
    return "\n".join(blocks)


def _outputs() -> Iterator[tuple[str, RenderableType]]:
    cards = {
        "table show": ("get_table", models.TableInfo),
        "explain": ("explain_plan", models.PlanExplanation),
        "compact --dry-run": ("plan_compaction", models.CompactionPlan),
        "write-plan": ("plan_write", models.WritePlan),
        "advise": ("advise_table", models.TableAdvice),
        "cache show": ("show_cache", models.TableCache),
        "table refresh": ("get_refresh", models.RefreshStatus),
        "policy set --dry-run": ("preview_retention", models.RetentionPreview),
        "maintain --explain": ("show_maintenance", models.TableMaintenance),
    }
    lists: dict[str, tuple[str, Callable[[Any], Sequence[Any]]]] = {
        "table list": ("list_tables", lambda a: models.TablePage(**a).tables),
        "history": ("list_plans", lambda a: models.PlanHistoryPage(**a).plans),
        "audit": ("list_changes", lambda a: models.AuditPage(**a).changes),
        "write list": ("list_writes", lambda a: models.WritePage(**a).writes),
        "cache list": ("list_cache_rules", lambda a: models.CacheRules(**a).rules),
        "worker list": ("list_workers", lambda a: models.WorkerPage(**a).workers),
        "table snapshots": ("list_snapshots", lambda a: models.SnapshotPage(**a).snapshots),
        "policy list": ("list_policies", lambda a: models.PolicyList(**a).policies),
        "token list": ("list_tokens", lambda a: models.TokenPage(**a).tokens),
    }
    makers: dict[str, tuple[str, Callable[[Any], RenderableType]]] = {
        "plan": ("get_plan", lambda a: _plan(models.Plan(**a))),
        "write streams": (
            "list_streams",
            lambda a: stream_list("sales.events", models.StreamPage(**a).streams, []),
        ),
    }
    yield "audit of definitions", drawn_list(list(_changes()), "none")
    yield "cat", as_table(_ROWS)
    yield "compact", drawn(_COMPACTION)
    answers = {step["operation"]: step["answer"] for step in reversed(_STORY)}
    for name, (operation, model) in cards.items():
        yield name, drawn(model(**answers[operation]), ["source_tasks"])
    for name, (operation, items) in lists.items():
        yield name, drawn_list(items(answers[operation]), "none")
    for name, (operation, maker) in makers.items():
        yield name, maker(answers[operation])


def _plan(plan: models.Plan) -> RenderableType:
    sizes = [size for power in range(9, 13) for size in [2**power] * power]
    return Group(
        drawn(plan),
        picture("Files before", "file", pa.array(sizes), "red"),
        picture("Groups after", "group", pa.array([sum(sizes)]), "green"),
    )


def _changes() -> Iterator[models.AuditRecord]:
    for age, ((kind, item, outcome), fields) in enumerate(_CHANGES):
        record = {
            "number": 9 - age,
            "at": f"2026-11-27T01:42:0{9 - age}Z",
            "principal": "ana",
            "operation": "define_cache_rule" if item else "register_table",
            "kind": kind,
            "outcome": outcome,
            "table": "sales.events",
            "item": item,
            "fields": [{"name": name, "before": old, "after": new} for name, old, new in fields],
        }
        yield models.AuditRecord.model_validate(record)


def _printed(output: RenderableType, width: str) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    more = {"NO_COLOR": "1", "TERM": "dumb", **({"COLUMNS": width} if width else {})}
    with (
        patch.dict(os.environ, environment | more, clear=True),
        redirect_stdout(io.StringIO()) as out,
    ):
        show(output)
    if not width:
        return out.getvalue()
    return "\n".join(line.rstrip(" ") for line in out.getvalue().splitlines()) + "\n"
