"""The command line: `windrow serve | demo | table … | plan | cache … | worker … | db … | token …`."""

import os
import signal
from types import FrameType

_INTERRUPTED = 130


def main() -> None:
    """Run the command that the process was started with, and exit."""
    # Commands are imported only now. Ctrl-C meanwhile ends the process on the spot: there is
    # nothing to tidy up, and an exception could come up anywhere in the code of others.
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
