"""Spark's own test suites: their jars, a run of them, and the results of their tests."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from pathlib import Path

from tests.support.processes.environments import python_with, skipped_without
from tests.support.servers.maven import jars_of

# The newest release whose test jars are published.
VERSION = "4.2.0"
_TIMEOUT_S = 1_800.0
_ROOT = Path(__file__).parents[2]
_MODULES = ("common-utils", "catalyst", "core", "hive", "sql", "sql-api", "tags", "unsafe")
_LIBRARIES = (
    "org.scalatest:scalatest_2.13:3.2.19",
    "org.scalatestplus:scalacheck-1-18_2.13:3.2.19.0",
    "org.scalatestplus:mockito-5-12_2.13:3.2.19.0",
)
# Spark has these itself.
_OF_SPARK = ("scala-library", "scala-reflect", "scala-xml")
# Where tests look for resources beside Spark's sources, and the module whose jar has them.
_RESOURCES = {"sql/core": "sql", "sql/hive": "hive"}


@dataclass(frozen=True)
class Suite:
    """A suite of Spark's tests.

    Attributes:
        name: The full name of its class.
        mode: `plain`, `reads`, `packs` or `writes`; see `tests.programs.judged_suites`.
        part: Which tests of a suite of golden files, as a pattern of their names; all if it is empty.
        excluded: Why tests are left out that fail for a reason that is not Windrow's, by their names.
    """

    name: str
    mode: str = "reads"
    part: str = ""
    excluded: Mapping[str, str] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """Its short name, with its part, and `packs` if it reads these; `hive.InsertSuite` of Hive's."""
        package, _, name = self.name.rpartition(".")
        label = f"hive.{name}" if ".hive" in package else name
        if self.mode == "packs":
            return f"{label} with packs"
        return f"{label}.{self.part}" if self.part else label


SQL = "org.apache.spark.sql"
# Reasons of more than one suite.
NODES = "looks for nodes of Spark's own scans in the plan"


@dataclass(frozen=True)
class Test:
    """The result of a test.

    Attributes:
        test: Its name.
        outcome: `passed`, `failed`, `canceled`, `ignored`, or `aborted` for a suite's own failure.
        seconds: How long it took.
        planned: How many scans and writes Windrow planned, by kind.
        left: How many Spark did, by kind and reason.
        error: The stack trace of its failure.
    """

    test: str
    outcome: str
    seconds: float
    planned: Mapping[str, int]
    left: Mapping[str, int]
    error: str

    @property
    def is_failure(self) -> bool:
        """Whether it failed, or its suite did."""
        return self.outcome in ("failed", "aborted")


@dataclass(frozen=True)
class Run:
    """The newest run of a suite.

    Attributes:
        on: Its date, such as `2026-11-29`.
        seconds: How long it took.
        tests: What came of its tests.
    """

    on: str
    seconds: float
    tests: Sequence[Test]


def _project() -> str:
    tests = "".join(
        f"<dependency><groupId>org.apache.spark</groupId><artifactId>spark-{name}_2.13</artifactId>"
        f"<version>{VERSION}</version><type>test-jar</type><exclusions><exclusion>"
        "<groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions></dependency>"
        for name in _MODULES
    )
    libraries = "".join(
        "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>"
        "</dependency>".format(*library.split(":"))
        for library in _LIBRARIES
    )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>windrow</groupId><artifactId>judges</artifactId><version>1</version>"
        f"<dependencies>{tests}{libraries}</dependencies></project>"
    )


def jars() -> Path:
    """Return the folder of Spark's tests; the test is skipped if they cannot be had.

    Their jars are unpacked, as many tests open their resources as files.
    """
    fetched = jars_of(f"spark-tests-{VERSION}", _project())
    folder = fetched[0].parent / "unpacked"
    done = folder / ".done"
    if done.exists():
        return folder
    for jar in fetched:
        name = jar.name
        if name.startswith("spark-"):
            with zipfile.ZipFile(jar) as archive:
                archive.extractall(folder / "classes" / name.removeprefix("spark-").split("_")[0])
        elif not name.startswith(_OF_SPARK):
            (folder / "jars").mkdir(parents=True, exist_ok=True)
            (folder / "jars" / name).write_bytes(jar.read_bytes())
    for place, module in _RESOURCES.items():
        link = folder / "home" / place / "src" / "test" / "resources"
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(folder / "classes" / module)
    done.touch()
    return folder


def python() -> str:
    """Return an interpreter with the Spark of the suites; the test is skipped without one."""
    with skipped_without(f"Spark {VERSION}"):
        return python_with(
            [f"pyspark=={VERSION}"], ".venv-judges", f".installed-{VERSION}", "--no-deps"
        )
    raise AssertionError("skipped above")


def _kept(suite: Suite) -> Path:
    name = re.sub(r"\W+", "-", suite.label)
    return Path(python()).parents[1] / "runs" / f"{name}.json"


def newest_run(suite: Suite) -> Run | None:
    """Return the newest run of a suite on this machine; None if there is none."""
    if not _kept(suite).exists():
        return None
    run = json.loads(_kept(suite).read_text(encoding="utf-8"))
    return Run(**run | {"tests": [Test(**test) for test in run["tests"]]})


def run(suite: Suite, folder: Path) -> list[Test]:
    """Run a suite, and return what came of each of its tests; `newest_run` returns it from then on.

    Args:
        suite: The suite.
        folder: Where its files lie; its log is beside it.

    Raises:
        AssertionError: The suite ended early.
    """
    began_s = time.monotonic()
    command = [python(), "-m", "tests.programs.judged_suites", str(jars()), str(folder)]
    log = folder.with_suffix(".log")
    with log.open("w") as errors:
        done = subprocess.run(
            [*command, suite.mode, suite.name, suite.part],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            timeout=_TIMEOUT_S,
            env=os.environ | {"PYTHONPATH": str(_ROOT)},
            cwd=folder.parent,
        )
    if done.returncode:
        raise AssertionError(
            f"{suite.name} ended with {done.returncode}: {log.read_text()[-4000:]}"
        )
    lines = done.stdout.splitlines()
    tests = [Test(**json.loads(line)) for line in lines if line.startswith('{"test"')]
    this = Run(
        datetime.now(timezone.utc).date().isoformat(), round(time.monotonic() - began_s, 1), tests
    )
    _kept(suite).parent.mkdir(exist_ok=True)
    _kept(suite).write_text(json.dumps(asdict(this)), encoding="utf-8")
    return tests
