"""The words of commands for remedies of the coordinator's problems."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from windrow_calls.errors import ProblemError

if TYPE_CHECKING:
    # Commands that call no coordinator start without the models.
    from windrow_core.models import Remedy

# By operation and parameters.
_COMMANDS = {
    "beat(worker_id)": "`windrow worker run` on its host does the rest",
    "claim_work()": "`windrow maintain`",
    "create_token()": "set WINDROW_TOKEN to",
    "forget_worker(worker_id)": "`windrow worker forget {worker_id}`",
    "get_cache_rule(name, rule)": "`windrow cache list {name}`",
    "get_budget()": "`windrow policy budget`",
    "get_plan(plan_id)": "try again in a moment",
    "get_policy(pattern)": "`windrow policy list`",
    "get_refresh(name)": "`windrow table refresh {name}` starts one",
    "get_table(name)": "`windrow table show {name}`",
    "list_cache_rules(name)": "`windrow cache list {name}`",
    "list_partition_values(name, snapshot_id)": "`client.partition_values` in Python",
    "list_policies()": "`windrow policy list`",
    "list_snapshots(name)": "`windrow table snapshots {name}`",
    "list_streams(name)": "`windrow write streams {name}`",
    "list_writes(name)": "`windrow write list {name}`",
    "protect_table(name, deletion_protection)": "`windrow table unprotect {name}`",
    "refresh_table(name)": "`windrow table refresh {name}`",
    "register_table(name)": "`windrow table register {name} LOCATION`",
    "register_table(name, replace)": "--replace",
    "repeat()": "check before you repeat the change",
}
# Fields of a request for a write plan that are not options of their own.
_COUNTS = {
    "keys": "--counts",
    "keys.columns": "--counts",
    "keys.buckets": "the column `bucket` of --counts",
}


def in_commands(error: ProblemError) -> str:
    """Return the text of an error, with commands instead of HTTP calls."""
    problem, remedy = error.problem, error.problem.remedy
    if remedy is not None and remedy.call == "plan_write":
        return problem.detail.replace(remedy.text, _in_options(remedy))
    return problem.worded(_COMMANDS)


def _in_options(remedy: Remedy) -> str:
    fields = "|".join(sorted(map(re.escape, remedy.arguments), reverse=True))
    # A value in quotes may follow.
    field = re.compile(rf"\b({fields})\b(?: '(\w+)')?")
    return field.sub(
        lambda match: " ".join(filter(None, (_option(match[1]), match[2]))), remedy.text
    )


def _option(field: str) -> str:
    return _COUNTS.get(field, f"--{field.replace('_', '-')}")
