"""Checks that hold for every problem."""

from __future__ import annotations

from typing import Any

import httpx

PREFIX = "urn:windrow:problem:"


def problem_of(answer: httpx.Response, status: int, slug: str) -> dict[str, Any]:
    """Check that an answer is this problem with all its fields, and return it."""
    assert answer.headers["Content-Type"] == "application/problem+json", answer.text
    body: dict[str, Any] = answer.json()
    assert (answer.status_code, body["type"]) == (status, PREFIX + slug), answer.text
    assert body["status"] == status
    assert body["title"]
    assert body["detail"]
    assert body["instance"] == answer.request.url.path
    return body
