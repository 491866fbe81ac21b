"""Measure the cost of checking who calls, and what they may do.

    python benchmarks/access.py [--quick] [--json FILE] [--files N] [--requests N]

Two coordinators share PostgreSQL and Redis: one requires no tokens, the other does. One caller
plans the same table at both, in turns: without a token, with one that has the scope `read`, with
one that has 100 grants, and with a signed token of an issuer. Every request has a different filter.
The processor time of the coordinators is compared as well; it depends less on other work on the
machine.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import perf_counter

import httpx
from common import Result, arguments, write_json
from inventories import generated
from rich import box
from rich.table import Table as RichTable
from servers import deployment
from tests.support.servers.coordinators import CoordinatorProcess
from tests.support.servers.issuers import issuer_server

import windrow
from windrow_calls.terminal.consoles import show

NAME = "access"
FILES, REQUESTS, ROUNDS = 1_000, 200, 5
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(kw_only=True)
class Caller:
    """A way to call, and the times of its plans."""

    name: str
    coordinator: CoordinatorProcess
    token: str | None
    times_s: list[float] = field(default_factory=list)
    cpu_s: float = 0.0


def main() -> None:
    """Measure and report."""
    parser = arguments("Measure the cost of checking callers.")
    parser.add_argument("--files", type=int, default=FILES, help="files of the table")
    parser.add_argument("--requests", type=int, help="plans of each caller and round")
    options = parser.parse_args()
    requests = options.requests or (5 if options.quick else REQUESTS)
    with issuer_server() as issuer, deployment() as servers:
        issuers = (
            f'{{"corp": {{"url": "{issuer.url}", "audience": "windrow", "scopes_claim": "scope"}}}}'
        )
        checking = {"WINDROW_REQUIRE_TOKENS": "true", "WINDROW_ISSUERS": issuers}
        with servers.replicas(1) as (open_one,), servers.replicas(1, **checking) as (closed,):
            with windrow.connect(open_one.url) as client:
                types = {"id": "bigint", "amount": "double", "day": "date"}
                client.register_table(
                    "sales.t",
                    str(servers.folder),
                    columns=types,
                    partition_columns={"ds": "string"},
                )
                client.publish("sales.t", generated(options.files))
                grants = [f"read:team{number}.*" for number in range(99)] + ["read:sales.*"]
                tokens = {
                    "token, `read`": client.create_token("one", scopes=["read"]).token,
                    "token, 100 grants": client.create_token("many", grants=grants).token,
                    "signed token": issuer.token(scope="read:sales.*", exp=2**31),
                }
            callers = [Caller(name="no token", coordinator=open_one, token=None)]
            callers += [
                Caller(name=name, coordinator=closed, token=token) for name, token in tokens.items()
            ]
            _measure(callers, 1, 20)
            for caller in callers:
                caller.times_s.clear()
                caller.cpu_s = 0.0
            _measure(callers, ROUNDS, requests)
    results = [_result(caller, callers[0], options.files) for caller in callers[1:]]
    show(_table(callers))
    if options.json is not None:
        cpu_ms = {one.name: one.cpu_s / len(one.times_s) * 1000 for one in callers}
        write_json(options.json, NAME, results, processor_ms=cpu_ms)


def _measure(callers: list[Caller], rounds: int, requests: int) -> None:
    at = 0
    with httpx.Client(timeout=60) as http:
        for _ in range(rounds):
            for caller in callers:
                headers = (
                    {} if caller.token is None else {"Authorization": f"Bearer {caller.token}"}
                )
                cpu_s = _cpu_s(caller.coordinator)
                for _ in range(requests):
                    at += 1
                    body = {"table": "sales.t", "filter": f"id > {at}", "page_size": 0}
                    began = perf_counter()
                    answer = http.post(
                        f"{caller.coordinator.url}/plans", json=body, headers=headers
                    )
                    caller.times_s.append(perf_counter() - began)
                    answer.raise_for_status()
                caller.cpu_s += _cpu_s(caller.coordinator) - cpu_s


def _cpu_s(coordinator: CoordinatorProcess) -> float:
    fields = Path(f"/proc/{coordinator.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _result(caller: Caller, without: Caller, files: int) -> Result:
    return Result(
        case=f"plan of {files:,} files, {caller.name}",
        metric="p50",
        unit="ms",
        windrow=median(caller.times_s) * 1000,
        peer=without.name,
        peer_value=median(without.times_s) * 1000,
    )


def _table(callers: list[Caller]) -> RichTable:
    table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("caller", "p50 ms", "more, ms", "processor ms", "more, ms"):
        table.add_column(column, justify="left" if column == "caller" else "right")
    first = callers[0]
    for caller in callers:
        p50, cpu = median(caller.times_s) * 1000, caller.cpu_s / len(caller.times_s) * 1000
        more = p50 - median(first.times_s) * 1000
        more_cpu = cpu - first.cpu_s / len(first.times_s) * 1000
        table.add_row(caller.name, f"{p50:.2f}", f"{more:+.2f}", f"{cpu:.2f}", f"{more_cpu:+.2f}")
    return table


if __name__ == "__main__":
    main()
