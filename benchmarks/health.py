"""How long a coordinator's `GET /health/live` takes, again and again."""

from __future__ import annotations

import time

import httpx

_POLL_S = 0.005


def health_waits(url: str, seconds: float) -> list[float]:
    """Return the seconds of each of many checks, one after another for some seconds."""
    waits: list[float] = []
    with httpx.Client(base_url=url, timeout=60) as http:
        end = time.monotonic() + seconds
        while (began := time.monotonic()) < end:
            http.get("/health/live").raise_for_status()
            waits.append(time.monotonic() - began)
            time.sleep(_POLL_S)
    return waits
