"""What the catalog for other engines answers about tables of the default namespace."""

from __future__ import annotations

import httpx


def load(http: httpx.Client, name: str, **query: str) -> httpx.Response:
    """Load a table."""
    return http.get(f"/iceberg/v1/namespaces/default/tables/{name}", params=query)


def refusal(answer: httpx.Response) -> str:
    """Return why a table is refused."""
    assert answer.status_code == 406
    message: str = answer.json()["error"]["message"]
    return message
