"""The words of each edge for calls that are remedies: HTTP, the client in Python, and commands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from windrow_core.errors import Call

Edge: TypeAlias = Literal["http", "python", "command"]


@dataclass(frozen=True, slots=True)
class Words:
    """How the edges word a call: templates with its arguments; an empty one is worded as in HTTP."""

    http: str
    python: str = ""
    command: str = ""


# By operation and parameters.
WORDS: Mapping[str, Words] = {
    "beat(worker_id)": Words(
        "send PUT /workers/{worker_id}, then report all the files that it holds under the session of "
        "the answer",
        "`windrow worker run` on its host does the rest",
        "`windrow worker run` on its host does the rest",
    ),
    "claim_work()": Words(
        "POST /maintenance/claims", "client.claim_work(worker)", "`windrow maintain`"
    ),
    "create_token()": Words(
        "send `Authorization: Bearer ...` with", "set WINDROW_TOKEN to", "set WINDROW_TOKEN to"
    ),
    "decide_maintenance()": Words(
        "POST /maintenance/rounds", "client.decide_maintenance()", "`windrow maintain --once`"
    ),
    "set_budget(pause)": Words(
        "PUT /maintenance/budget",
        "client.set_maintenance_budget(pause={pause})",
        "`windrow policy budget --resume`",
    ),
    "define_cache_rule(name)": Words(
        "PUT /tables/{name}/cache-rules",
        "client.cache_table({name!r}, filter)",
        "`windrow cache add {name} --where …`",
    ),
    "define_policy(pattern)": Words(
        "PUT /policies/{pattern}",
        "client.set_policy({pattern!r})",
        "`windrow policy set {pattern}`",
    ),
    "forget_worker(worker_id)": Words(
        "DELETE /workers/{worker_id} and report again",
        "client.forget_worker({worker_id!r})",
        "`windrow worker forget {worker_id}`",
    ),
    "get_budget()": Words(
        "GET /maintenance/budget", "client.maintenance_budget()", "`windrow policy budget`"
    ),
    "get_cache_rule(name, rule)": Words(
        "GET /tables/{name}/cache-rules/{rule}",
        "client.cache_rule({name!r}, {rule!r})",
        "`windrow cache list {name}`",
    ),
    "get_plan(plan_id)": Words(
        "GET /plans/{plan_id} until its status is completed",
        "try again in a moment",
        "try again in a moment",
    ),
    "get_policy(pattern)": Words(
        "GET /policies/{pattern}", "client.policy({pattern!r})", "`windrow policy list`"
    ),
    "get_refresh(name)": Words(
        "GET /tables/{name}/refresh tells how the last one ended",
        "client.refresh({name!r}) starts one",
        "`windrow table refresh {name}` starts one",
    ),
    "get_table(name)": Words(
        "GET /tables/{name}", "client.table({name!r})", "`windrow table show {name}`"
    ),
    "list_cache_rules(name)": Words(
        "GET /tables/{name}/cache-rules",
        "client.cache_rules({name!r})",
        "`windrow cache list {name}`",
    ),
    "list_partition_values(name, snapshot_id)": Words(
        "GET /tables/{name}/snapshots/{snapshot_id}/partitions",
        "client.partition_values({name!r}, {snapshot_id})",
        "`client.partition_values` in Python",
    ),
    "list_policies()": Words("GET /policies", "client.policies()", "`windrow policy list`"),
    "list_snapshots(name)": Words(
        "GET /tables/{name}/snapshots",
        "client.snapshots({name!r})",
        "`windrow table snapshots {name}`",
    ),
    "list_streams(name)": Words(
        "GET /tables/{name}/streams", "client.streams({name!r})", "`windrow write streams {name}`"
    ),
    "list_writes(name)": Words(
        "GET /tables/{name}/writes", "client.writes({name!r})", "`windrow write list {name}`"
    ),
    "protect_table(name, deletion_protection)": Words(
        'PUT /tables/{name}/protection with `{{"deletion_protection": false}}`',
        "client.unprotect_table({name!r})",
        "`windrow table unprotect {name}`",
    ),
    "refresh_table(name)": Words(
        "POST /tables/{name}/refresh", "client.refresh({name!r})", "`windrow table refresh {name}`"
    ),
    "register_table(name)": Words(
        "`windrow table register {name} LOCATION`, or PUT /tables/{name}",
        "client.register_table({name!r}, location)",
        "`windrow table register {name} LOCATION`",
    ),
    "register_table(name, replace)": Words(
        "PUT /tables/{name}?replace=true (`replace=True`)", "`replace=True`", "--replace"
    ),
    "repeat()": Words(
        "check before you repeat the change, or repeat it with the same Idempotency-Key",
        command="check before you repeat the change",
    ),
}


def worded(call: Call, edge: Edge) -> str:
    """Return an edge's words for a call."""
    words = WORDS[call.signature]
    return (getattr(words, edge) or words.http).format_map(call.arguments)
