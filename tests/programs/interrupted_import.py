"""A command that Ctrl-C stops while it imports a module.

`python -m tests.programs.interrupted_import MODULE COMMAND…`
"""

from __future__ import annotations

import os
import signal
import sys

import windrow_cli


class Interruption:
    """A finder that stops the process when it is asked for the module."""

    def __init__(self, module: str) -> None:
        self._module = module

    def find_spec(self, name: str, *_: object) -> None:
        """Leave other modules to the usual finders."""
        if name == self._module:
            os.kill(os.getpid(), signal.SIGINT)


if __name__ == "__main__":
    sys.meta_path.insert(0, Interruption(sys.argv.pop(1)))
    windrow_cli.main()
