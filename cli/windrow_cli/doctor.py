"""`windrow doctor`: find out what is missing where it runs, and what mends it."""

from __future__ import annotations

from dataclasses import asdict

import typer

from windrow.connecting import connect
from windrow_calls.terminal.consoles import show_result
from windrow_calls.terminal.options import DEFAULT_URL, AsJson, Url
from windrow_calls.terminal.render import drawn


def doctor(url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Check this machine and the coordinator, and say what to do.

    Exits with 1 if something cannot work. In a driver, `client.doctor(spark)` checks the session, too.
    """
    # More attempts would make people wait for the answer that there is none.
    with connect(url, attempts=1, check=False) as client:
        result = client.doctor()
    show_result(asdict(result), lambda: drawn(result), as_json)
    if result.has_failures:
        raise typer.Exit(1)
