"""Builds wheels, by Hatchling, with the documents as the site that coordinators serve at `/guide`.

Editable installations have no site, and need nothing to build one.
"""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import hatchling.build as hatchling
from hatchling.build import (  # noqa: F401
    build_editable,
    build_sdist,
    build_wheel,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
)
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# As in the extra `docs`.
_REQUIREMENTS = ["mkdocs>=1.6,<2", "mkdocs-material>=9.7,<10"]


def get_requires_for_build_wheel(config_settings: dict[str, Any] | None = None) -> list[str]:
    """Return what builds a wheel: see PEP 517."""
    return [*hatchling.get_requires_for_build_wheel(config_settings), *_REQUIREMENTS]


class GuideHook(BuildHookInterface):  # type: ignore[type-arg]
    """Adds the site to a wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """See `BuildHookInterface`."""
        if version == "editable":
            return
        self._folder = TemporaryDirectory()
        _build(Path(self.root), self._folder.name)
        build_data["force_include"][self._folder.name] = "windrow_service/guide"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """See `BuildHookInterface`."""
        if version != "editable":
            self._folder.cleanup()


def _build(root: Path, folder: str) -> None:
    os.environ["NO_MKDOCS_2_WARNING"] = "1"
    try:
        from mkdocs.commands.build import build
        from mkdocs.config import load_config
    except ModuleNotFoundError as error:
        needed = " ".join(f"'{requirement}'" for requirement in _REQUIREMENTS)
        raise SystemExit(f"{error}; the wheel's guide needs it: pip install {needed}") from error
    # What a newer release warns of is no reason not to install.
    build(load_config(str(root / "mkdocs.yml"), site_dir=folder, strict=False))
