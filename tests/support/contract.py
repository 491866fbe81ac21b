"""The published contract, read from its file: generating it takes longer than most tests."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import yaml

_FILE = Path(__file__).parents[2] / "openapi.yaml"


@cache
def _document() -> dict[str, Any]:
    document: dict[str, Any] = yaml.load(_FILE.read_text(), yaml.CSafeLoader)
    return document


def schemas() -> dict[str, dict[str, Any]]:
    """Return the schemas of `openapi.yaml`, by name."""
    found: dict[str, dict[str, Any]] = _document()["components"]["schemas"]
    return found


@cache
def operations() -> dict[str, dict[str, Any]]:
    """Return the operations of `openapi.yaml`, by method and path.

    tests/contract/test_openapi.py proves that they are what the service serves.
    """
    return {
        f"{method.upper()} {path}": operation
        for path, methods in _document()["paths"].items()
        for method, operation in methods.items()
    }
