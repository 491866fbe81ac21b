"""`deploy/compose.yaml`, with the values of an env file, and the schema of such files."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.charts import ROOT

FOLDER = ROOT / "deploy"
# Docker Compose reads files with this library, which has the specification's schema.
_LIBRARY = "github.com/compose-spec/compose-go/v2@v2.16.2"
_CACHE = Path(sys.prefix) / "compose"
_FETCH_TIMEOUT_S = 120.0
_PARAMETER = re.compile(r"\$(?:\$|\{(\w+)(?:(:[-?])([^}]*))?\})")


def text() -> str:
    """Return the file as it is."""
    return (FOLDER / "compose.yaml").read_text()


def parameters() -> set[str]:
    """Return the names that the file takes from an env file."""
    return {match[1] for match in _PARAMETER.finditer(text()) if match[1]}


def variables(path: Path) -> dict[str, str]:
    """Return the variables of an env file, as Compose and systemd read plain values."""
    pairs = (line.partition("=") for line in path.read_text().splitlines() if line[:1] not in "#")
    return {name: value for name, sign, value in pairs if sign}


def composition(values: Mapping[str, str]) -> dict[str, Any]:
    """Return the file with values for its parameters, as Compose would."""

    def value(match: re.Match[str]) -> str:
        name, sign, word = match.groups()
        if name is None:
            return "$"
        given = values.get(name, "")
        assert given or sign != ":?", f"{name}: {word}"
        return given or (word if sign == ":-" else "")

    # Merges of YAML (`<<`) happen in a parsed file, and so do aliases.
    loaded = yaml.safe_load(text())
    return {key: _filled(part, value) for key, part in loaded.items()}


def _filled(part: Any, value: Any) -> Any:
    if isinstance(part, str):
        return _PARAMETER.sub(value, part)
    if isinstance(part, list):
        return [_filled(one, value) for one in part]
    if isinstance(part, dict):
        return {key: _filled(one, value) for key, one in part.items()}
    return part


def schema() -> dict[str, Any]:
    """Return the schema of Compose's specification, fetched on first use.

    The test is skipped if it cannot be had.
    """
    copy = _CACHE / "compose-spec.json"
    if not copy.exists():
        folder = _fetched()
        if folder is None:
            pytest.skip("the schema of Compose cannot be fetched: Go or its proxy is out of reach")
        _CACHE.mkdir(exist_ok=True)
        shutil.copyfile(folder / "schema" / "compose-spec.json", copy)
    return dict(json.loads(copy.read_text()))


def _fetched() -> Path | None:
    if shutil.which("go") is None:
        return None
    try:
        done = subprocess.run(
            ["go", "mod", "download", "-json", _LIBRARY],
            capture_output=True,
            text=True,
            check=True,
            timeout=_FETCH_TIMEOUT_S,
        )
    except subprocess.SubprocessError:
        return None
    return Path(json.loads(done.stdout)["Dir"])
