"""Virtual environments with packages beside those of this one, for subprocesses."""

from __future__ import annotations

import fcntl
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[3]


def python_with(packages: Sequence[str], name: str, stamp: str, *options: str) -> str:
    """Return the interpreter of an environment, which is created on first use and then kept.

    It has the packages, and everything else from the environment that runs this.

    Args:
        packages: The packages, as pip takes them.
        name: The name of its folder.
        stamp: The file there that says that it is whole, named after what it was made from.
        options: More options of `pip install`.

    Raises:
        CalledProcessError: A package cannot be had.
    """
    folder = _ROOT / name
    python = folder / "bin" / "python"
    others = sysconfig.get_path("purelib")
    done = folder / stamp
    folder.mkdir(exist_ok=True)
    # Two test runs may reach this point at once.
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists() or done.read_text() != others:
            subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
            pip = [str(python), "-m", "pip", "install", "-q", "--no-compile", *options]
            subprocess.run([*pip, *packages], check=True)
            own = folder / Path(others).relative_to(sys.prefix)
            (own / "others.pth").write_text(f"import site; site.addsitedir({others!r})\n")
            done.write_text(others)
    return str(python)


@contextmanager
def skipped_without(what: str) -> Iterator[None]:
    """Skip the test if `python_with` cannot have its packages.

    Args:
        what: What they are, for the reason.
    """
    try:
        yield
    except subprocess.CalledProcessError:
        pytest.skip(f"{what} cannot be had: the package index is out of reach, or lacks it")
