"""The fields of all models that refuse unknown fields.

`python -m tests.support.api.sent_fields > tests/fixtures/sent_fields.json` records them; do so when a
version is released, and not before.
"""

from __future__ import annotations

import json
import pkgutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import windrow_core.models
from windrow_core.models.base import Request

_FILE = Path(__file__).parents[2] / "fixtures" / "sent_fields.json"


def strict_models() -> dict[str, type[Request]]:
    """Return the models of requests, and of answers that repeat them, by name."""
    for module in pkgutil.iter_modules(windrow_core.models.__path__):
        import_module(f"windrow_core.models.{module.name}")
    return {model.__name__: model for model in _below(Request)}


def recorded_fields() -> dict[str, list[str]]:
    """Return the fields of these models in the version before this one."""
    fields: dict[str, list[str]] = json.loads(_FILE.read_text())
    return fields


def _below(base: type[Any]) -> Iterator[type[Any]]:
    for model in base.__subclasses__():
        yield model
        yield from _below(model)


if __name__ == "__main__":
    fields_of_models = {
        name: list(model.model_fields) for name, model in sorted(strict_models().items())
    }
    print(json.dumps(fields_of_models, indent=1))  # noqa: T201
