"""The coordinator tells the time by its database's clock alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import windrow_service

_SERVICE = Path(windrow_service.__file__).parent
_READS = {"now", "utcnow", "today", "time", "time_ns"}
_OWNERS = {"date", "datetime", "time"}
# Modules that read the machine's clock, and why they may.
EXCEPTIONS = {
    "store/clock.py": "compares it with the database's",
    "rate_limits.py": "its library counts by the machine's clock, and says in it when to try again",
    "telemetry/tracing.py": "collectors of traces expect it",
    "engines/folder.py": "compares the times of files that the machine has written",
    "inventory/build.py": "compares the times of folders on the machine's disks",
    "inventory/listing/relisting.py": "as above",
    "inventory/listing/walking.py": "as above",
}


def _reads(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in _READS:
            owner = node.value
            name = owner.id if isinstance(owner, ast.Name) else getattr(owner, "attr", "")
            if name in _OWNERS:
                yield f"{name}.{node.attr}"
        elif isinstance(node, ast.ImportFrom) and node.module == "time":
            yield from (one.name for one in node.names if one.name in _READS)


def test_only_the_databases_clock_reads_the_machines() -> None:
    readers = {
        str(path.relative_to(_SERVICE))
        for path in _SERVICE.rglob("*.py")
        if any(_reads(ast.parse(path.read_text())))
    }

    assert readers == set(EXCEPTIONS)


def test_each_way_to_read_the_machines_clock_is_seen() -> None:
    ways = [
        "datetime.now(timezone.utc)",
        "datetime.datetime.utcnow()",
        "date.today()",
        "time.time()",
        "from time import time_ns",
        "clock = datetime.now",
    ]

    assert [way for way in ways if not any(_reads(ast.parse(way)))] == []
    assert not any(_reads(ast.parse("time.monotonic(); self.clock.now; moment.time()")))
