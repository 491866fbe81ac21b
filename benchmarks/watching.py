"""Measure what identity, grants, audit, metrics and limits of requests cost a plan.

    python benchmarks/watching.py [--quick] [--json FILE] [--files N] [--plans N]

Coordinators that share PostgreSQL and Redis plan the same table in turns: the first requires no
token and measures nothing, and each of the others has one feature more than the one before. One
caller waits for each plan before it requests the next; every plan has a different filter.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from statistics import median
from urllib.parse import urlsplit

from anyio.from_thread import start_blocking_portal
from common import Result, arguments, console, write_json
from inventories import generated
from rich import box
from rich.table import Table as RichTable
from servers import CoordinatorProcess, Deployment, deployment
from tests.support.servers.coordinators import free_port

import windrow
from windrow_calls.terminal.consoles import show
from windrow_service import administration
from windrow_service.settings import Settings

NAME = "watching"
_TOKENS = {"WINDROW_REQUIRE_TOKENS": "true"}
_RATES = {"WINDROW_LIMITS__REQUESTS_PER_MINUTE": str(10**9)}
_COLUMNS = {"id": "bigint", "amount": "double", "day": "date"}
_DAYS = 300
_PLAIN = "none of them"


@dataclass
class Watched:
    """A coordinator, the seconds of its plans, and its processor time."""

    name: str
    process: CoordinatorProcess
    headers: dict[str, str]
    http: HTTPConnection
    seconds: list[float] = field(default_factory=list)
    cpu_s: float = 0.0

    def plan(self, number: int) -> float:
        """Return the seconds of one plan."""
        request = {"table": "t", "filter": f"id > {number} and ds <> 'day-{number % _DAYS}'"}
        body = json.dumps(request | {"page_size": 1})
        began = time.perf_counter()
        self.http.request("POST", "/plans", body, self.headers)
        answer = self.http.getresponse()
        content = answer.read()
        time_s = time.perf_counter() - began
        assert answer.status == 200, content
        return time_s


@dataclass(frozen=True)
class Figure:
    """The cost of plans for one coordinator."""

    name: str
    p50_ms: float
    more_ms: float
    cpu_ms: float
    more_cpu_ms: float


def main() -> None:
    """Measure and report."""
    parser = arguments("Measure what identity, grants, audit, metrics and limits cost a plan.")
    parser.add_argument("--files", type=int, default=1_000)
    parser.add_argument("--plans", type=int, help="plans of each coordinator")
    options = parser.parse_args()
    plans = options.plans or (40 if options.quick else 2_000)
    with deployment() as servers, ExitStack() as stack:
        watched = list(_started(servers, stack))
        with windrow.connect(watched[0].process.url, timeout_s=300) as client:
            client.register_table(
                "t", str(servers.folder), columns=_COLUMNS, partition_columns={"ds": "string"}
            )
            client.publish("t", generated(options.files))
        _take_turns(watched, plans)
        figures = [_figure(one, watched[0], plans) for one in watched]
    show(_table(figures))
    plain, *others = figures
    results = [
        Result(
            case=f"a plan of {options.files:,} files with {one.name}",
            metric=metric,
            unit="ms",
            windrow=windrow_ms,
            peer=_PLAIN,
            peer_value=peer_ms,
        )
        for one in others
        for metric, windrow_ms, peer_ms in (
            ("p50", one.p50_ms, plain.p50_ms),
            ("CPU time", one.cpu_ms, plain.cpu_ms),
        )
    ]
    if options.json is not None:
        write_json(options.json, NAME, results, figures=[asdict(one) for one in figures])


def _started(servers: Deployment, stack: ExitStack) -> Iterator[Watched]:
    token = _token(servers)

    def metrics() -> dict[str, str]:
        return {"WINDROW_METRICS__PORT": str(free_port())}

    for name, environment in (
        (_PLAIN, {}),
        ("identity, grants, audit", _TOKENS),
        ("and metrics", _TOKENS | metrics()),
        # Callers are counted in Redis, by name: only those with a token.
        ("and limits of requests", _TOKENS | metrics() | _RATES),
    ):
        (process,) = stack.enter_context(servers.replicas(1, **environment))
        headers = {"Content-Type": "application/json"}
        if "WINDROW_REQUIRE_TOKENS" in environment:
            headers["Authorization"] = f"Bearer {token}"
        yield Watched(name, process, headers, HTTPConnection(urlsplit(process.url).netloc))


def _token(servers: Deployment) -> str:
    settings = Settings.model_validate({"database_url": servers.database_url})

    async def create() -> str:
        async with administration.open_tokens(settings) as tokens:
            return (await tokens.create("bench", ["read:t", "write:other.*"], None))[1]

    with start_blocking_portal() as portal:
        return portal.call(create)


def _take_turns(watched: list[Watched], plans: int) -> None:
    for number in range(plans // 10):
        for one in watched:
            one.plan(number)
    before = [_cpu_s(one.process) for one in watched]
    for number in range(plans):
        # Each turn begins with another one: a plan's after-effects must not always hit the same.
        first = number % len(watched)
        for one in watched[first:] + watched[:first]:
            one.seconds.append(one.plan(number))
    for one, spent_s in zip(watched, before, strict=True):
        one.cpu_s = _cpu_s(one.process) - spent_s
    console.print(f"{plans:,} plans of each coordinator, in turns")


def _cpu_s(process: CoordinatorProcess) -> float:
    words = Path(f"/proc/{process.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def _figure(one: Watched, plain: Watched, plans: int) -> Figure:
    # Each plan is compared with that of the same turn, because a disturbance affects both.
    more = [here - there for here, there in zip(one.seconds, plain.seconds, strict=True)]
    return Figure(
        name=one.name,
        p50_ms=median(one.seconds) * 1000,
        more_ms=median(more) * 1000,
        cpu_ms=one.cpu_s / plans * 1000,
        more_cpu_ms=(one.cpu_s - plain.cpu_s) / plans * 1000,
    )


def _table(figures: list[Figure]) -> RichTable:
    table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False)
    for title in ("with", "p50", "more in the same turn", "CPU time", "more"):
        table.add_column(title, justify="left" if title == "with" else "right")
    for one in figures:
        table.add_row(
            one.name,
            f"{one.p50_ms:.2f} ms",
            f"{one.more_ms:+.2f} ms",
            f"{one.cpu_ms:.2f} ms",
            f"{one.more_cpu_ms:+.2f} ms",
        )
    return table


if __name__ == "__main__":
    main()
