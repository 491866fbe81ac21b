"""Errors of the demo: something that it needs is not here.

* WindrowError
  + DemoError
    - MissingPackageError
    - MissingJavaError
    - ForeignFolderError          the folder for the data holds something else
    - CoordinatorStartError
"""

from __future__ import annotations

from pathlib import Path

from windrow.errors import WindrowError


class DemoError(WindrowError):
    """Base of what can keep the demo from running."""


class MissingPackageError(DemoError):
    """A Python package is not installed."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(package, extra)
        self.package = package
        self.extra = extra

    def __str__(self) -> str:
        return (
            f"{self.package} is not installed here: pip install 'windrow-spark[{self.extra}]', "
            f"or '.[{self.extra}]' in a clone"
        )


class MissingJavaError(DemoError):
    """There is no Java, or one that is too old for Spark."""

    def __init__(self, found: str) -> None:
        super().__init__(found)
        self.found = found

    def __str__(self) -> str:
        return (
            f"Spark needs Java 17 or newer, and {self.found}: install it "
            "(Debian, Ubuntu: apt-get install openjdk-17-jre-headless; macOS: brew install "
            "openjdk@17; without root: unpack one from https://adoptium.net), and set JAVA_HOME "
            "to its folder if `java` is not on the PATH"
        )


class ForeignFolderError(DemoError):
    """A folder for generated data holds files that were not generated."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.folder = folder

    def __str__(self) -> str:
        return (
            f"{self.folder} holds something that was not written here and is left alone: "
            "choose another folder for the data, or move it away"
        )


class CoordinatorStartError(DemoError):
    """The coordinator's process ended, or did not answer in time."""

    def __init__(self, reason: str, log: Path) -> None:
        super().__init__(reason, log)
        self.reason = reason
        self.log = log

    def __str__(self) -> str:
        return f"the coordinator did not start ({self.reason}): see {self.log}"
