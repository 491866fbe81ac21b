"""The command line: `windrow serve | demo | table … | plan`."""

from windrow.cli.app import main

__all__ = ["main"]
