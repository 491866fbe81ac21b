"""Get a client of a coordinator elsewhere, or of one inside this process."""

from __future__ import annotations

from pathlib import Path

from windrow.client import Client
from windrow_calls.connecting import transport_in_process, transport_to
from windrow_calls.installed import require_service


def connect(
    url: str | None = None,
    *,
    token: str | None = None,
    timeout_s: float = 60.0,
    attempts: int = 4,
    check: bool = True,
) -> Client:
    """Return a client of a coordinator, once the coordinator has answered.

    Args:
        url: URL of the coordinator, for example `http://127.0.0.1:8080`. By default the environment
            variable WINDROW_URL, or else `http://127.0.0.1:8080`.
        token: Identifies the caller, if the coordinator requires tokens. By default the environment
            variable WINDROW_TOKEN, or else the file that WINDROW_TOKEN_FILE names. That file is
            read for each request, because such tokens are replaced before they expire.
        timeout_s: How long one answer may take.
        attempts: Maximum number of attempts at one request, for example while the coordinator
            cannot be reached.
        check: Whether to make sure that a coordinator answers, in at least four attempts, as one of
            several replicas may be stopping. Otherwise, the first call is the first request.

    Raises:
        CoordinatorUnreachableError: No answer came.
        UnsupportedAnswerError: Something other than a coordinator answered.
        InvalidTokenError: The token is malformed.
        TokenFileError: The file of the token cannot be read.

    Example:
        with windrow.connect("http://127.0.0.1:8080") as client:
            client.tables()
    """
    return Client(transport_to(url, token, timeout_s, attempts, check=check))


def embedded(
    state_dir: str | Path = ".windrow", *, allowed_locations: tuple[str, ...] = ("/",)
) -> Client:
    """Start a coordinator inside this process and return a client of it.

    The coordinator listens on a socket file that only this user can open, and stops when the client
    is closed or the process ends.

    Args:
        state_dir: Folder of the coordinator's database, which stays for the next time.
        allowed_locations: Folders below which tables may be.

    Raises:
        ServiceNotInstalledError: The `[service]` extra is not installed.

    Example:
        with windrow.embedded() as client:
            client.tables()
    """
    require_service()
    from windrow.embedding import EmbeddedCoordinator

    coordinator = EmbeddedCoordinator(Path(state_dir), allowed_locations)
    transport = transport_in_process(coordinator.socket)
    return Client(transport, on_close=coordinator.stop)
