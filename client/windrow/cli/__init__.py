"""The command line: `windrow serve | demo | table … | plan | cache … | worker … | db … | token …`."""

import os
import signal
from types import FrameType

_INTERRUPTED = 130


def main() -> None:
    """Run the command given in `sys.argv`, and exit."""
    # Importing the commands takes a while. Ctrl-C during it ends the process at once: there is
    # nothing to clean up, and an exception could surface anywhere in third-party code.
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:
        signal.signal(signal.SIGINT, _stop)
    from windrow.cli.app import main as run

    signal.signal(signal.SIGINT, handler)
    run()


def _stop(_: int, __: FrameType | None) -> None:
    os.write(2, b"windrow: stopped\n")
    os._exit(_INTERRUPTED)


__all__ = ["main"]
