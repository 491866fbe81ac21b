"""The published contract, as a file: making it from the service takes longer than most tests."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import yaml

_FILE = Path(__file__).parents[2] / "openapi.yaml"


@cache
def operations() -> dict[str, dict[str, Any]]:
    """Return the operations of `openapi.yaml`, by method and path.

    tests/contract/test_openapi.py proves that they are what the service serves.
    """
    paths = yaml.load(_FILE.read_text(), yaml.CSafeLoader)["paths"]
    return {
        f"{method.upper()} {path}": operation
        for path, methods in paths.items()
        for method, operation in methods.items()
    }
