"""Who may make which call: the oracle of the access tests, and the page made from it.

`python -m tests.support.api.access_matrix` prints docs/reference/access-matrix.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from tests.support.api import contract

Outcome = Literal["yes", "401", "403", "404"]
_INCLUDED = {
    "read": {"read"},
    "write": {"read", "write"},
    "worker": {"worker"},
    "admin": {"read", "write", "worker", "admin"},
}
# The grants of these callers' tokens; `mine` is a folder of tables, and a worker.
IDENTITIES: dict[str, tuple[str, ...] | None] = {
    "nobody": None,
    "`read`": ("read",),
    "`write`": ("write",),
    "`admin`": ("admin",),
    "`worker`": ("worker",),
    "`read:mine.*`": ("read:mine.*",),
    "`write:mine.*`": ("write:mine.*",),
    "`admin:mine.*`": ("admin:mine.*",),
    "`read`, `write:mine.*`": ("read", "write:mine.*"),
    "`worker:mine`": ("worker:mine",),
}
_OF_ALL = {"/audit", "/tokens"}
_OF_ALL_CALLS = {"PUT /maintenance/budget"}


@dataclass(frozen=True)
class Call:
    """A call of the contract.

    Attributes:
        name: Method and path.
        scope: The scope that it needs.
        subject: What the answer depends on besides the scope.
    """

    name: str
    scope: str
    subject: Literal["table", "new table", "pattern", "plan", "worker", "all", None]


def calls() -> Iterator[Call]:
    """Yield every call of the contract that is not open to everybody."""
    for name, operation in contract.operations().items():
        if "security" not in operation:
            assert name.startswith("GET /health/"), f"{name} has no rule"
            continue
        ((scope,),) = (entry["token"] for entry in operation["security"])
        yield Call(name, scope, _subject(name, operation))


def _subject(name: str, operation: dict[str, Any]) -> Any:
    path = name.split(" ")[1]
    if name == "PUT /tables/{name}":
        return "new table"
    for start, subject in (
        ("/tables/{name}", "table"),
        ("/policies/{pattern}", "pattern"),
        ("/plans/{plan_id}", "plan"),
        ("/workers/{worker_id}", "worker"),
    ):
        if path.startswith(start):
            return subject
    if name in _OF_ALL_CALLS or any(path.startswith(start) for start in _OF_ALL):
        return "all"
    return "table" if _body_names_table(operation) else None


def _body_names_table(operation: dict[str, Any]) -> bool:
    content = operation.get("requestBody", {}).get("content", {})
    schema = content.get("application/json", {}).get("schema", {})
    name = str(schema.get("$ref", "")).rpartition("/")[2]
    body_schema = contract.schemas().get(name, {})
    return "table" in body_schema.get("properties", {})


def expected(call: Call, grants: tuple[str, ...] | None, *, own: bool) -> Outcome:
    """Return the answer to a caller.

    Args:
        call: The call.
        grants: Grants of the caller's token; None without a token.
        own: Whether the call is about table `mine.…`, worker `mine` or a plan that the caller made;
            else it is about another table, another worker, or another's plan of a table `mine.…`.
    """

    def holds(scope: str, *, own: bool = True, everywhere: bool = False) -> bool:
        for grant in grants or ():
            granted_scope, _, pattern = grant.partition(":")
            of_workers = (scope == "worker") == (granted_scope == "worker")
            if scope in _INCLUDED[granted_scope] and (
                not pattern or (own and not everywhere and of_workers)
            ):
                return True
        return False

    if grants is None:
        return "401"
    if not holds(call.scope):
        return "403"
    if call.subject is None:
        return "yes"
    if call.subject == "all":
        return "yes" if holds(call.scope, everywhere=True) else "403"
    if call.subject == "plan":
        return "yes" if own or holds("admin") else "404"
    if call.subject == "table" and not holds("read", own=own):
        return "404"
    return "yes" if holds(call.scope, own=own) else "403"


def page() -> str:
    """Return docs/reference/access-matrix.md."""
    lines = [
        "# Who may make which call",
        "",
        "Made from `openapi.yaml` by `make openapi`; tests/contract/test_access.py asks a "
        "coordinator for each cell.",
        "",
        "Columns are what a token allows. Where a cell has two answers, the first is for the "
        "caller's own: a table `mine.…`, the pattern `mine.*`, the worker `mine`, or a plan that it "
        "made. The second is for another: a table `other.…`, the pattern `other.*`, the worker "
        "`other`, or somebody else's plan of a table `mine.…`.",
        "",
        f"| call | {' | '.join(IDENTITIES)} |",
        "|---" * (len(IDENTITIES) + 1) + "|",
    ]
    for call in calls():
        cells = []
        for grants in IDENTITIES.values():
            own, other = (expected(call, grants, own=own) for own in (True, False))
            cells.append(own if own == other else f"{own} / {other}")
        lines.append(f"| `{call.name}` | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def path_of(call: Call, values: dict[str, str]) -> tuple[str, str]:
    """Return the method and the path of a call, with values in place of its parameters."""
    method, path = call.name.split(" ")
    return method, re.sub(r"\{(\w+)\}", lambda match: values.get(match[1], "some"), path)


if __name__ == "__main__":
    print(page(), end="")  # noqa: T201 - it is a program
