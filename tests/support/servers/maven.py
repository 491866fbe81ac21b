"""Jars and archives of Maven Central: fetched on first use, and kept beside this Python."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_CACHE = Path(sys.prefix) / "maven"
_TIMEOUT_S = 300.0


def spark_jars() -> Path:
    """Return the folder of Spark's own jars."""
    import pyspark

    return Path(pyspark.__file__).parent / "jars"


def hadoop_version() -> str:
    """Return the release of Hadoop that Spark's jars have."""
    (api,) = spark_jars().glob("hadoop-client-api-*.jar")
    return api.stem.removeprefix("hadoop-client-api-")


def jar_of(artifact: str) -> Path:
    """Return one jar, without those that it depends on; the test is skipped if it cannot be had.

    Args:
        artifact: `group:name:version`, or `group:name:version:jar:tests` for the jar of its tests.
    """
    _, name, version, *kind = artifact.split(":")
    jar = _CACHE / f"{'-'.join((name, version, *kind[1:]))}.jar"
    with _turn():
        if not jar.exists():
            _copy(artifact, ["dependency:copy", f"-Dartifact={artifact}"], _CACHE)
    return jar


def unpacked(artifact: str) -> Path:
    """Return the folder of an unpacked archive; the test is skipped if it cannot be had.

    Args:
        artifact: `group:name:version:tar.gz`; the archive has one folder, `name-version`.
    """
    _, name, version, ending = artifact.split(":")
    folder, parts = _CACHE / f"{name}-{version}", _CACHE / f"{name}.parts"
    with _turn():
        if not folder.exists():
            parts.mkdir(exist_ok=True)
            _copy(artifact, ["dependency:copy", f"-Dartifact={artifact}"], parts)
            archive = parts / f"{folder.name}.{ending}"
            subprocess.run(["tar", "-xf", archive, "-C", parts], check=True)
            archive.unlink()
            (parts / folder.name).rename(folder)
            parts.rmdir()
    return folder


def jars_of(name: str, project: str) -> list[Path]:
    """Return the jars that a project needs; the test is skipped if they cannot be had.

    Args:
        name: The name of the folder that keeps them.
        project: The project, as a `pom.xml`; once fetched, it is not looked at again.
    """
    folder = _CACHE / name
    with _turn():
        if not folder.exists():
            parts = _CACHE / f"{name}.parts"
            parts.mkdir(exist_ok=True)
            (parts / "pom.xml").write_text(project)
            _copy(name, ["dependency:copy-dependencies", "-DincludeScope=runtime"], parts)
            parts.rename(folder)
    return sorted(folder.glob("*.jar"))


@contextmanager
def _turn() -> Iterator[None]:
    """Wait until no other process fetches."""
    _CACHE.mkdir(exist_ok=True)
    with (_CACHE / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _copy(name: str, goal: list[str], folder: Path) -> None:
    mvn = shutil.which("mvn")
    if mvn is None or not _ran([mvn, "-q", "-B", *goal, f"-DoutputDirectory={folder}"], folder):
        pytest.skip(f"{name} cannot be fetched: Maven Central is out of reach")


def _ran(command: list[str], folder: Path) -> bool:
    try:
        done = subprocess.run(command, capture_output=True, timeout=_TIMEOUT_S, cwd=folder)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0
