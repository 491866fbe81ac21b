"""The error that leaves a table or path to Spark."""

from __future__ import annotations


class NotTheSameError(Exception):
    """It is not certain that Windrow would return the rows that Spark would; the text says why."""
