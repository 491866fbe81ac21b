"""Virtual environments with older releases of Spark, for subprocesses.

    python -m tests.support.spark.older_spark [--all]

creates the environment of the oldest release, or of all, unless they exist. They share everything
except Spark with the environment that runs this.
"""

from __future__ import annotations

import fcntl
import subprocess
import sys
import sysconfig
from pathlib import Path

# The last release of each line that is supported besides the newest.
OLDEST = "3.5.9"
OTHERS = ("4.0.5", "4.1.4", "4.2.1")

_ROOT = Path(__file__).parents[3]


def python_with_spark(version: str) -> str:
    """Return the interpreter of an environment, which is created on first use and then kept.

    Args:
        version: Version of Spark.
    """
    folder = _ROOT / f".venv-spark{''.join(version.split('.')[:2])}"
    python = folder / "bin" / "python"
    others = sysconfig.get_path("purelib")
    stamp = folder / f".installed-{version}"
    folder.mkdir(exist_ok=True)
    # Two test runs may reach this point at once.
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stamp.exists() or stamp.read_text() != others:
            subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
            # Spark's dependencies are shared; only Spark 3.5 also needs distutils, which setuptools
            # provides on Python 3.12 and later.
            packages = [f"pyspark=={version}", *(["setuptools<81"] if version == OLDEST else [])]
            pip = [str(python), "-m", "pip", "install", "-q", "--no-deps", "--no-compile"]
            subprocess.run([*pip, *packages], check=True)
            own = folder / Path(others).relative_to(sys.prefix)
            (own / "others.pth").write_text(f"import site; site.addsitedir({others!r})\n")
            stamp.write_text(others)
    return str(python)


if __name__ == "__main__":
    for version in (OLDEST, *OTHERS) if "--all" in sys.argv else (OLDEST,):
        python_with_spark(version)
