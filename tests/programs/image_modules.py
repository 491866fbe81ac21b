"""Imports every module of the coordinator in the image, and prints the test tools that are there.

Started by its path, since the image has no tests.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pkgutil import walk_packages

import windrow_service

TOOLS = ("pytest", "pyspark", "hypothesis", "pip", "hatchling", "cyclonedx")

for module in walk_packages(windrow_service.__path__, "windrow_service."):
    is_program = module.name.endswith(("__main__", ".openapi", ".env"))
    if not is_program and ".versions." not in module.name:
        import_module(module.name)
print([tool for tool in TOOLS if find_spec(tool)])
