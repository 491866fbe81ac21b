"""`windrow status`: the status of a coordinator."""

from __future__ import annotations

from windrow.connecting import connect
from windrow_calls.terminal.consoles import show_result
from windrow_calls.terminal.options import DEFAULT_URL, AsJson, Url
from windrow_calls.terminal.render import drawn


def status(url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Show the status of a coordinator, and what went wrong.

    Shows its replicas, tables, maintenance and workers.

    Exits with 1 if the coordinator does not answer or cannot work.
    """
    with connect(url, attempts=1, check=False) as client:
        result = client.status()
    show_result({"status": result}, lambda: drawn(result), as_json)
