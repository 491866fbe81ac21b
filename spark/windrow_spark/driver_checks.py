"""Checks of what a Spark driver on this machine needs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyspark

from windrow_calls.diagnosis import Check
from windrow_spark import class_cache

_OLDEST_JAVA = 17
_OLDEST_SPARK = (3, 5)
_ANSWER_TIMEOUT_S = 30
_SPARKS_PYTHON = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")
_INSTALL = "start/install"


def driver_checks() -> Iterator[Check]:
    """Check PySpark, Java, and what drivers are told about Python; nothing of Spark is started."""
    version = str(pyspark.__version__)
    if release(version) < _OLDEST_SPARK:
        upgrade = "pip install --upgrade 'windrow-spark[spark]'"
        yield Check("spark", "failure", f"PySpark {version} is too old", upgrade, _INSTALL)
    else:
        yield Check("spark", "ok", f"PySpark {version}")
    yield _java()
    for name in _SPARKS_PYTHON:
        program = os.environ.get(name)
        if program:
            yield _python(name, program)
    yield _class_cache()


def release(version: str) -> tuple[int, ...]:
    """Return the first two numbers of a version, whatever vendors write behind them."""
    return tuple(map(int, re.findall(r"\d+", version)[:2]))


def _java() -> Check:
    home = os.environ.get("JAVA_HOME")
    program = str(Path(home, "bin", "java")) if home else "java"
    remedy = "install Java 17 or newer (Debian: apt-get install openjdk-17-jre-headless), and set JAVA_HOME to it"
    try:
        text = _output(program, "-version")
    except (OSError, subprocess.SubprocessError) as error:
        return Check("java", "failure", f"{program} cannot be run: {error}", remedy, _INSTALL)
    match = re.search(r'version "(?:1\.)?(\d+)', text)
    result = f"{text.partition(chr(10))[0]} at {shutil.which(program) or program}"
    if match is None or int(match[1]) < _OLDEST_JAVA:
        return Check("java", "failure", f"too old for Spark 4: {result}", remedy, _INSTALL)
    return Check("java", "ok", result)


def _python(variable: str, program: str) -> Check:
    """Check a Python that Spark is told to start."""
    remedy = f"export {variable}={sys.executable}"
    page = "how-to/read"
    code = "import sys, numpy, pyarrow; print('%d.%d' % sys.version_info[:2], pyarrow.__version__)"
    try:
        words = _output(program, "-c", code).split()
    except (OSError, subprocess.SubprocessError) as error:
        reason = getattr(error, "output", None) or str(error)
        last_line = str(reason).strip().rpartition("\n")[2]
        return Check(variable, "failure", f"{program} cannot run tasks: {last_line}", remedy, page)
    version, arrow = words[-2:]
    here = "{}.{}".format(*sys.version_info[:2])
    if version != here:
        result = f"{program} is Python {version}, and this is {here}: Spark refuses tasks"
        return Check(variable, "failure", result, remedy, page)
    return Check(variable, "ok", f"{program} is Python {version} with pyarrow {arrow}")


def _class_cache() -> Check:
    caches = class_cache.users_caches()
    try:
        if caches is None:
            raise OSError("this user has no home")
        class_cache.check(caches)
    except OSError as error:
        return Check(
            "class cache",
            "warning",
            f"every driver compiles Windrow's Java classes, which takes seconds: {error}",
            "set XDG_CACHE_HOME to a folder that only this user can write to",
        )
    return Check("class cache", "ok", f"drivers share compiled classes in {caches}")


def _output(*command: str) -> str:
    return subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_ANSWER_TIMEOUT_S,
        check=True,
    ).stdout
