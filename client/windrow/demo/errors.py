"""Errors of the demo: something that it needs is not here.

* WindrowError
  + DemoError
    - MissingPackageError
    - MissingJavaError
    - ForeignFolderError          the folder for the data holds something else
    - CoordinatorStartError
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from windrow.errors import WindrowError


class DemoError(WindrowError):
    """Base of what can keep the demo from running."""


@dataclass(eq=False)
class MissingPackageError(DemoError):
    """A Python package is not installed."""

    package: str
    extra: str
    message = "{package} is not installed here: {remedy}"
    remedy = "pip install 'windrow-spark[{extra}]', or '.[{extra}]' in a clone"


@dataclass(eq=False)
class MissingJavaError(DemoError):
    """There is no Java, or one that is too old for Spark."""

    found: str
    message = "Spark needs Java 17 or newer, and {found}: {remedy}"
    remedy = (
        "install it (Debian, Ubuntu: apt-get install openjdk-17-jre-headless; macOS: brew "
        "install openjdk@17; without root: unpack one from https://adoptium.net), and set "
        "JAVA_HOME to its folder if `java` is not on the PATH"
    )


@dataclass(eq=False)
class ForeignFolderError(DemoError):
    """A folder for generated data holds files that were not generated."""

    folder: Path
    message = "{folder} holds something that was not written here and is left alone: {remedy}"
    remedy = "choose another folder for the data, or move it away"


@dataclass(eq=False)
class CoordinatorStartError(DemoError):
    """The coordinator's process ended, or did not answer in time."""

    reason: str
    log: Path
    message = "the coordinator did not start ({reason}): {remedy}"
    remedy = "see {log}"
