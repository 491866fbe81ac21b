"""Errors of the demo.

* WindrowError
  + DemoError
    - ForeignFolderError          the folder for the data holds something else
    - CoordinatorStartError
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from windrow.errors import WindrowError


class DemoError(WindrowError):
    """Base of errors that keep the demo from running, except for missing packages."""


@dataclass(eq=False)
class ForeignFolderError(DemoError):
    """A folder for generated data holds files that were not generated."""

    folder: Path
    message = "{folder} holds files that the demo did not write, so it was not changed: {remedy}"
    remedy = "choose another folder for the data, or move it away"


@dataclass(eq=False)
class CoordinatorStartError(DemoError):
    """The coordinator's process ended, or did not answer in time."""

    reason: str
    log: Path
    message = "the coordinator did not start ({reason}): {remedy}"
    remedy = "see {log}"
