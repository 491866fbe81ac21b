"""The command line: `windrow serve | demo | table … | plan | cache … | worker … | db … | token …`."""

from windrow.cli.app import main

__all__ = ["main"]
