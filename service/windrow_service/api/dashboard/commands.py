"""Commands for operators to copy, for what a page cannot do itself."""

from __future__ import annotations

import shlex

from fastapi import Request

from windrow_core.files.places import place_of
from windrow_core.models import TableInfo


def url_of(request: Request) -> str:
    """Return the coordinator's URL as the browser knows it."""
    # Of several values, the first is from the proxy that the browser talks to.
    header = request.headers.get("X-Forwarded-Proto", "").partition(",")[0].strip().lower()
    scheme = header if header in ("http", "https") else request.url.scheme
    return f"{scheme}://{request.url.netloc}"


def compact_command(request: Request, table: TableInfo) -> str:
    """Return the command that compacts a table."""
    words = ["windrow", "compact", table.name]
    if place_of(table.definition.location).shows_both:
        words.append("--readers-may-see-both")
    return shlex.join([*words, "--url", url_of(request)])


def maintain_command(request: Request) -> str:
    """Return the command that runs a worker of maintenance."""
    return shlex.join(["windrow", "maintain", "--url", url_of(request)])


def warm_command(request: Request, table: str) -> str:
    """Return the command that lets workers fetch what the cache rules of a table mark."""
    return shlex.join(["windrow", "cache", "warm", table, "--url", url_of(request)])
