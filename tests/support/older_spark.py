"""A virtual environment with the oldest line of Spark that Windrow runs on, for subprocesses."""

from __future__ import annotations

import fcntl
import subprocess
import sys
from pathlib import Path

_VERSION = "3.5.9"
_ROOT = Path(__file__).parents[2]
_FOLDER = _ROOT / ".venv-spark35"


def python_with_older_spark() -> str:
    """Return the interpreter of the environment, which is made on first use and then kept."""
    python = _FOLDER / "bin" / "python"
    installed = _FOLDER / f".installed-{_VERSION}"
    _FOLDER.mkdir(exist_ok=True)
    # Two runs of tests may come here at once.
    with (_FOLDER / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not installed.exists():
            subprocess.run([sys.executable, "-m", "venv", str(_FOLDER)], check=True)
            # This line of Spark needs what setuptools has of distutils on Python 3.12 and above.
            packages = ["--editable", f"{_ROOT}[spark]", f"pyspark=={_VERSION}", "setuptools<81"]
            subprocess.run([str(python), "-m", "pip", "install", "-q", *packages], check=True)
            installed.touch()
    return str(python)
