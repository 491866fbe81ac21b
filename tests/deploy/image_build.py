"""The environments of the image, built by the Dockerfile's commands and kept between test runs.

    python -m tests.deploy.image_build

builds them, unless they match the Dockerfile and the files that it copies.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from docker.utils.build import exclude_paths

from tests.deploy.charts import ROOT
from tests.deploy.images import stages

# The lock files of the packages that a build installs.
LOCKS = "requirements.txt", "requirements-build.txt"
_KEPT = ROOT / ".venv-image"
# Where the build puts environments; the image has a copy of one.
_ENVIRONMENTS = "/opt/"
# Modules are compiled when they are imported: most never are.
_QUICK_PIP = {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_COMPILE": "0"}


def built_environments() -> Path:
    """Return the folder of environments; build them unless they are up to date.

    Packages stay until a file that names them changes; Windrow stays until a copied file changes.
    """
    packages = _digest(["Dockerfile", "pyproject.toml", *LOCKS])
    everything = _digest(["Dockerfile", *context()])
    environments = _KEPT / packages
    stamp = environments / ".built"
    _KEPT.mkdir(exist_ok=True)
    # Two test runs may get here at the same time.
    with (_KEPT / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stamp.exists() or stamp.read_text() != everything:
            stamp.unlink(missing_ok=True)
            for folder in _KEPT.iterdir():
                if folder.is_dir() and folder != environments:
                    shutil.rmtree(folder)
            # Windrow is installed again, and so is every package that is missing.
            for path in environments.glob("windrow/lib/python*/site-packages/windrow*"):
                shutil.rmtree(path)
            _build(environments)
            stamp.write_text(everything)
    return environments


def context() -> set[str]:
    """Return the files that a build sees, by Docker's own reading of .dockerignore."""
    patterns = [
        line
        for line in (ROOT / ".dockerignore").read_text().splitlines()
        if line and line[0] != "#"
    ]
    return {path for path in exclude_paths(str(ROOT), patterns) if (ROOT / path).is_file()}


def bare() -> dict[str, str]:
    """Return the environment without the variables of this test run."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("WINDROW", "PYTHON", "VIRTUAL_ENV", "COVERAGE"))
    }
    return kept | {"PATH": f"{Path(sys.executable).parent}:{kept['PATH']}"}


def _digest(names: Iterable[str]) -> str:
    told = [sys.version.encode()]
    for name in sorted(names):
        told += [name.encode(), hashlib.sha256((ROOT / name).read_bytes()).digest()]
    return hashlib.sha256(b"\0".join(told)).hexdigest()


def _build(environments: Path) -> None:
    """Run the build stage, with folders in place of those of the image."""
    included = context()
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "source")
        for instruction, words in stages()[0]:
            if instruction == "COPY":
                *origins, target = words.split()
                for origin in origins:
                    _copy(origin, source / target, included)
            elif instruction == "RUN":
                done = subprocess.run(
                    ["sh", "-c", words.replace(_ENVIRONMENTS, f"{environments}/")],
                    cwd=source,
                    env=bare() | _QUICK_PIP,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    check=False,
                    timeout=600,
                )
                if done.returncode:
                    raise RuntimeError(f"the image cannot be built: RUN {words}\n{done.stdout}")


def _copy(origin: str, target: Path, included: set[str]) -> None:
    # COPY puts a file into the target folder, but only the contents of a folder.
    for path in included:
        if path == origin:
            to = target / Path(path).name
        elif path.startswith(f"{origin}/"):
            to = target / Path(path).relative_to(origin)
        else:
            continue
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, to)


if __name__ == "__main__":
    built_environments()
