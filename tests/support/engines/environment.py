"""A virtual environment with the releases of engines whose extensions can be installed.

DuckDB loads its extensions for Iceberg from packages, which exist for an older release than the
tests' own. They are fetched on first use, and kept.
"""

from __future__ import annotations

import fcntl
import subprocess
import sys
import sysconfig
from functools import cache
from pathlib import Path

import pytest

PACKAGES = (
    "duckdb==1.5.5",
    "duckdb-cli==1.5.5",
    "duckdb-extension-avro==1.5.5",
    "duckdb-extension-httpfs==1.5.5",
    "duckdb-extension-iceberg==1.5.5",
    "polars-iceberg==0.1.0",
)
_ROOT = Path(__file__).parents[3]
_TIMEOUT_S = 600.0


@cache
def python_with_engines() -> str:
    """Return the interpreter of the environment; the test is skipped if it cannot be made."""
    folder = _ROOT / ".venv-engines"
    python = folder / "bin" / "python"
    others = sysconfig.get_path("purelib")
    stamp, content = folder / ".installed", "\n".join((*PACKAGES, others))
    folder.mkdir(exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stamp.exists() or stamp.read_text() != content:
            subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
            pip = [str(python), "-m", "pip", "install", "-q", "--no-deps", "--no-compile"]
            result = subprocess.run(
                [*pip, *PACKAGES], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
            )
            if result.returncode:
                pytest.skip(f"DuckDB 1.5.5 cannot be installed: {result.stderr.strip()[-200:]}")
            # Everything else is shared.
            own = folder / Path(others).relative_to(sys.prefix)
            (own / "others.pth").write_text(f"import site; site.addsitedir({others!r})\n")
            stamp.write_text(content)
    return str(python)


def duckdb_home(folder: Path) -> Path:
    """Return a home folder in which DuckDB has its extensions, so that `INSTALL` fetches nothing.

    Args:
        folder: A folder for it.
    """
    environment = Path(python_with_engines()).parents[1]
    shell = environment / "bin" / "duckdb"
    command = [str(shell), "-csv", "-noheader", "-c", "PRAGMA platform"]
    platform = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    for file in environment.rglob("*.duckdb_extension"):
        home = folder / ".duckdb" / "extensions" / file.parent.name / platform
        home.mkdir(parents=True, exist_ok=True)
        (home / file.name).symlink_to(file)
    return folder
