"""A coordinator in a thread of this process, behind a private socket file."""

from __future__ import annotations

import asyncio
import tempfile
import threading
from pathlib import Path

import uvicorn

from windrow_calls.errors import WindrowError
from windrow_service.serving import logging, server_config
from windrow_service.settings import Settings

_START_TIMEOUT_S = 30.0
# How long requests may still run after a stop; refreshes are stopped after that.
_STOP_TIMEOUT_S = 3


class EmbeddedStartError(WindrowError):
    """The coordinator in this process did not start."""


class EmbeddedCoordinator:
    """A coordinator that runs from construction until `stop`.

    Attributes:
        socket: The socket file that it listens on.

    Raises:
        EmbeddedStartError: It did not start.
    """

    def __init__(self, state_dir: Path, allowed_locations: tuple[str, ...]) -> None:
        _make_folder(state_dir)
        # A folder of mode 0700 keeps other users of this machine out.
        self._folder = tempfile.TemporaryDirectory(prefix="windrow-", ignore_cleanup_errors=True)
        self.socket = Path(self._folder.name) / "socket"
        # Defaults are given too: the environment may hold the settings of another coordinator.
        self._settings = settings = Settings(
            host="127.0.0.1",
            require_tokens=False,
            database_url=None,
            redis_url=None,
            state_dir=state_dir,
            allowed_locations=allowed_locations,
        )
        self._server = uvicorn.Server(
            server_config(settings, uds=str(self.socket), stop_timeout_s=_STOP_TIMEOUT_S)
        )
        self._thread = threading.Thread(target=self._serve, name="windrow", daemon=True)
        self._ended = threading.Event()
        self._error: BaseException | None = None
        self._thread.start()
        self._wait_until_started()

    def stop(self) -> None:
        """Stop serving, and wait until it has stopped."""
        self._server.should_exit = True
        self._thread.join()
        self._folder.cleanup()

    def _serve(self) -> None:
        try:
            # Only messages for a person at a prompt, not a line for each request.
            with logging(self._settings, level="warning"):
                asyncio.run(self._server.serve())
        except BaseException as error:  # handed to the thread that waits for the start
            self._error = error
        finally:
            self._ended.set()

    def _wait_until_started(self) -> None:
        waited_s = 0.0
        while not self._server.started:
            if self._ended.wait(0.01) or waited_s > _START_TIMEOUT_S:
                self.stop()
                raise EmbeddedStartError(
                    "the coordinator in this process did not start: "
                    f"{_reason(self._error) or 'the log above says why'}"
                )
            waited_s += 0.01


def _make_folder(state_dir: Path) -> None:
    try:
        state_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EmbeddedStartError(
            f"state folder {str(state_dir)!r} cannot be made ({error.strerror}): "
            "give another state_dir"
        ) from error


def _reason(error: BaseException | None) -> str:
    # uvicorn logs why, and then exits.
    return "" if error is None or isinstance(error, SystemExit) else str(error)
