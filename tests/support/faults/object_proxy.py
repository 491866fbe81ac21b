"""A proxy in front of an object store, as a process: counts, delays, limits and fails."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias
from urllib.parse import urlsplit

_PROGRAM = Path(__file__).with_name("object_proxy_process.py")

# What goes wrong with an answer: cut in the middle of its body; a Content-Length above the body's
# or, with fewer bytes, below the object's; another ETag; an error in its place; nothing, for rules
# that only stall.
Fault: TypeAlias = Literal["cut", "longer", "shorter", "etag", "status", "none"]


@dataclass(frozen=True, slots=True)
class Counts:
    """The requests and answers of a proxy since its counts were cleared.

    Attributes:
        requests: Number of requests by method and `bucket/key`, listings as `bucket/?prefix`.
        sent: Bytes of bodies by `bucket/key`.
        statuses: Number of answers by status.
        seconds: From the first request to the last.
        most_in_flight: Most requests that waited for their answers at once.
    """

    requests: Counter[tuple[str, str]]
    sent: Counter[str]
    statuses: Counter[int]
    seconds: float
    most_in_flight: int

    def for_objects(self) -> Counter[tuple[str, str]]:
        """Return the requests that are not listings."""
        return Counter(
            {what: count for what, count in self.requests.items() if "/?" not in what[1]}
        )


class ObjectProxy:
    """A running proxy; `Host` and everything that clients sign pass through unchanged.

    Attributes:
        url: Its endpoint.
    """

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        assert process.stdout is not None
        self.url = f"http://127.0.0.1:{int(process.stdout.readline())}"
        self._rules: list[dict[str, Any]] = []

    def delay(self, seconds: float) -> None:
        """Delay each answer, counted from its request."""
        self._command(do="set", delay_s=seconds)

    def limit(self, per_second: float | None, *, burst: float = 1.0) -> None:
        """Answer 503 SlowDown to requests above a rate, after a burst."""
        self._command(do="set", limit=per_second, burst=burst)

    def spoil(
        self,
        key: str,
        fault: Fault,
        *,
        times: int | None = None,
        after: int = 0,
        methods: tuple[str, ...] = ("GET",),
        status: int = 0,
        code: str = "",
        headers: dict[str, str] | None = None,
        stall_s: float = 0.0,
        share: float = 1.0,
    ) -> None:
        """Make requests for some keys go wrong.

        Args:
            key: A part of `bucket/key`.
            fault: What goes wrong.
            times: Number of requests that go wrong; None for all.
            after: Number of requests that go well before.
            methods: Methods of the requests.
            status: Status of an error.
            code: Code of an error, such as `SlowDown`.
            headers: Further headers of an error.
            stall_s: Seconds before the first byte.
            share: How many of these requests go wrong, by chance.
        """
        self._rules.append(
            {
                "key": key,
                "fault": fault,
                "times": times,
                "after": after,
                "methods": methods,
                "status": status,
                "code": code,
                "headers": headers or {},
                "stall_s": stall_s,
                "share": share,
            }
        )
        self._command(do="set", rules=self._rules)

    def behave(self) -> None:
        """Remove all delays, limits and faults."""
        self._rules.clear()
        self._command(do="set", rules=[], delay_s=0.0, limit=None)

    def stop_listening(self) -> None:
        """Cut all connections, and refuse new ones until `listen`."""
        self._command(do="stop")

    def listen(self) -> None:
        """Listen on the same port again."""
        self._command(do="listen")

    def clear(self) -> None:
        """Count from zero."""
        self._command(do="clear")

    def counts(self) -> Counts:
        """Return the counts."""
        answer = self._command(do="counts")
        return Counts(
            Counter({(method, key): count for method, key, count in answer["requests"]}),
            Counter(answer["sent"]),
            Counter({int(status): count for status, count in answer["statuses"].items()}),
            answer["seconds"],
            answer["most_in_flight"],
        )

    def cpu_s(self) -> float:
        """Return the CPU time of its process so far (Linux)."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / 100

    def _command(self, **command: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


@contextmanager
def object_proxy(endpoint: str) -> Iterator[ObjectProxy]:
    """Run a proxy in front of the server at an endpoint until the end of the block."""
    server = urlsplit(endpoint)
    command = [sys.executable, str(_PROGRAM), str(server.hostname), str(server.port)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield ObjectProxy(process)
        finally:
            process.kill()
