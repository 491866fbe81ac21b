"""Print the published contract: `python -m windrow_service.openapi > openapi.yaml`."""

from __future__ import annotations

import json
import sys
from typing import Any

import yaml

from windrow_service.bootstrap import build_app
from windrow_service.settings import Settings


def document() -> dict[str, Any]:
    """Return the OpenAPI document that the coordinator serves."""
    contract: dict[str, Any] = json.loads(json.dumps(build_app(Settings()).openapi()))
    return contract


def main() -> None:
    """Write the document to standard output."""
    yaml.dump(
        document(), sys.stdout, yaml.CSafeDumper, sort_keys=False, allow_unicode=True, width=100
    )


if __name__ == "__main__":
    main()
