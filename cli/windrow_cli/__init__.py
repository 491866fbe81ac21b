"""The command line: `windrow serve | table … | plan | cache … | worker … | db … | token …`."""

import os
import signal
from importlib import import_module
from types import FrameType

_INTERRUPTED = 130


def main(module: str = "windrow_cli.app") -> None:
    """Run the command given in `sys.argv` by `main` of a module, and exit."""
    # Importing the commands takes a while. Ctrl-C during it ends the process at once: there is
    # nothing to clean up, and an exception could surface anywhere in third-party code.
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:
        signal.signal(signal.SIGINT, _stop)
    run = import_module(module).main
    signal.signal(signal.SIGINT, handler)
    run()


def _stop(_: int, __: FrameType | None) -> None:
    os.write(2, b"windrow: stopped\n")
    os._exit(_INTERRUPTED)


__all__ = ["main"]
