"""The published contract, read from its file: generating it takes longer than most tests."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import yaml

_FILE = Path(__file__).parents[3] / "openapi.yaml"


@cache
def document() -> dict[str, Any]:
    """Return `openapi.yaml`, which callers must not change.

    tests/contract/test_openapi.py proves that it is what the service serves.
    """
    document: dict[str, Any] = yaml.load(_FILE.read_text(), yaml.CSafeLoader)
    return document


def schemas() -> dict[str, dict[str, Any]]:
    """Return the schemas of `openapi.yaml`, by name."""
    models: dict[str, dict[str, Any]] = document()["components"]["schemas"]
    return models


@cache
def operations() -> dict[str, dict[str, Any]]:
    """Return the operations of `openapi.yaml`, by method and path."""
    return {
        f"{method.upper()} {path}": operation
        for path, methods in document()["paths"].items()
        for method, operation in methods.items()
    }
