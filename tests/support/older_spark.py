"""A virtual environment with the oldest supported Spark release line, for subprocesses.

    python -m tests.support.older_spark

creates it unless it exists. It shares everything except Spark with the environment that runs this.
"""

from __future__ import annotations

import fcntl
import subprocess
import sys
import sysconfig
from pathlib import Path

_VERSION = "3.5.9"
_FOLDER = Path(__file__).parents[2] / ".venv-spark35"


def python_with_older_spark() -> str:
    """Return the interpreter of the environment, which is created on first use and then kept."""
    python = _FOLDER / "bin" / "python"
    others = sysconfig.get_path("purelib")
    installed = _FOLDER / f".installed-{_VERSION}"
    _FOLDER.mkdir(exist_ok=True)
    # Two test runs may reach this point at once.
    with (_FOLDER / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not installed.exists() or installed.read_text() != others:
            subprocess.run([sys.executable, "-m", "venv", str(_FOLDER)], check=True)
            # This Spark needs distutils, which setuptools provides on Python 3.12 and later.
            packages = [f"pyspark=={_VERSION}", "setuptools<81"]
            subprocess.run([str(python), "-m", "pip", "install", "-q", *packages], check=True)
            own = _FOLDER / Path(others).relative_to(sys.prefix)
            (own / "others.pth").write_text(f"import site; site.addsitedir({others!r})\n")
            installed.write_text(others)
    return str(python)


if __name__ == "__main__":
    python_with_older_spark()
