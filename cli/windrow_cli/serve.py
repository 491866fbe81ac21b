"""`windrow serve`: run the coordinator in this process until stopped."""

from __future__ import annotations

import asyncio
import os
import shlex
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from windrow_calls.installed import require_package, require_service
from windrow_calls.terminal.consoles import show
from windrow_calls.terminal.java import require_java
from windrow_calls.terminal.listings import FactTable
from windrow_cli.errors import CommandError
from windrow_cli.maintaining import MaintenanceLoop, command

if TYPE_CHECKING:
    from windrow_service.settings import Settings

_MASTER = "local[*]"
_MAINTENANCE = "windrow_service.maintenance"


def serve(
    host: Annotated[
        str | None,
        typer.Option(
            help="Address to listen on, such as 0.0.0.0 for all; 127.0.0.1 by default.",
            metavar="ADDRESS",
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            help="Port to listen on; 8080 by default, 0 for any free port.", metavar="PORT"
        ),
    ] = None,
    state_dir: Annotated[
        Path | None,
        typer.Option(help="Folder of the embedded database; .windrow by default.", metavar="DIR"),
    ] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option(
            help="Allow tables below this folder, or below a URI such as s3://bucket/tables; "
            "repeatable; the current folder by default.",
            metavar="DIR",
        ),
    ] = None,
    require_tokens: Annotated[
        bool | None,
        typer.Option(
            "--require-tokens/--no-require-tokens",
            help="Require a token on loopback addresses too; other addresses always require one.",
        ),
    ] = None,
    maintain: Annotated[
        bool,
        typer.Option(
            "--maintain",
            envvar="WINDROW_MAINTAIN",
            help="Run `windrow maintain` beside the coordinator, with Spark on this machine; needs "
            "Java.",
        ),
    ] = False,
) -> None:
    """Run the coordinator until stopped.

    Options can also be set in the environment, for example WINDROW_PORT=8081.
    """
    require_service()
    folders = [os.path.abspath(one) for one in allow or [] if "://" not in one]
    if missing := [folder for folder in folders if not os.path.isdir(folder)]:
        raise CommandError(f"there is no folder {missing[0]}: make it, or give another to --allow")
    from pydantic_settings import SettingsError

    from windrow_service.settings import Settings

    options: dict[str, Any] = {
        "host": host,
        "port": port,
        "state_dir": state_dir,
        "require_tokens": require_tokens,
        "allowed_locations": tuple(map(_absolute, allow)) if allow else None,
    }
    try:
        settings = Settings.model_validate(
            {name: value for name, value in options.items() if value is not None}
        )
    except SettingsError as error:
        raise CommandError(str(error)) from error
    if not settings.allowed_locations:
        settings = settings.model_copy(update={"allowed_locations": (str(Path.cwd()),)})
    is_embedded = settings.database_url is None
    if maintain:
        _require_maintainable(settings)
    with ExitStack() as resources:
        if is_embedded:
            _make_writable(settings.state_dir)
            resources.enter_context(_locked(settings.state_dir))
        listening = resources.enter_context(listen(settings.host, settings.port))
        # Imported last because they are slow: mistakes in the options are reported first.
        import uvicorn

        from windrow_service.bootstrap import check
        from windrow_service.logs import get_logger
        from windrow_service.serving import logging, server_config

        asyncio.run(check(settings))
        server = uvicorn.Server(server_config(settings, owns_process=True))
        name = f"[{settings.host}]" if ":" in settings.host else settings.host
        url = f"http://{name}:{listening.getsockname()[1]}"
        state = str(settings.state_dir.resolve()) if is_embedded else "PostgreSQL"
        token_command = _token_command(settings)
        rows = [
            ("listening", url),
            ("in Python", f"windrow.connect({url!r})"),
            ("in the shell", f"export WINDROW_URL={url}"),
            ("in a browser", f"{url}/dashboard, {url}/docs"),
            *([] if token_command is None else [("first token", token_command)]),
            ("state", state),
            ("tables under", ", ".join(settings.allowed_locations)),
        ]
        show(FactTable(rows))
        resources.enter_context(logging(settings, owns_process=True))
        if maintain:
            loop = MaintenanceLoop(
                command(url, _MASTER), settings.maintenance.every, get_logger(_MAINTENANCE)
            )
            resources.enter_context(loop)
        server.run(sockets=[listening])
    if not server.started:
        raise CommandError("the coordinator did not start: its log above says why")


def _require_maintainable(settings: Settings) -> None:
    """Make sure that the work of maintenance can be done beside this coordinator."""
    if settings.database_url is not None:
        raise CommandError(
            "--maintain is for a coordinator with its own database: beside replicas, run `windrow "
            "maintain` by cron or as a CronJob"
        )
    if settings.tokens_required and not (
        os.environ.get("WINDROW_TOKEN") or os.environ.get("WINDROW_TOKEN_FILE")
    ):
        raise CommandError(
            "--maintain needs a token of the scope write here: make one with `windrow token create "
            "maintenance --scope write`, and set WINDROW_TOKEN to it"
        )
    require_package("pyspark", "spark")
    require_java()


def _token_command(settings: Settings) -> str | None:
    """Return the command that makes a token for a person; None if none is required."""
    if not settings.tokens_required:
        return None
    command = "windrow token create NAME --scope admin"
    if settings.database_url is not None:
        return f"{command} (with the same WINDROW_DATABASE_URL)"
    return f"{command} --state-dir {shlex.quote(str(settings.state_dir.resolve()))}"


def _absolute(folder: str) -> str:
    return folder if "://" in folder else os.path.abspath(folder)


def _make_writable(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CommandError(
            f"state folder {folder} cannot be made ({error.strerror}): choose another with "
            "--state-dir"
        ) from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise CommandError(
            f"state folder {folder} cannot be written to: choose another with --state-dir"
        )


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keep other coordinators out of a state folder until the end of the block."""
    if sys.platform == "win32":
        yield
        return
    import fcntl

    # The lock belongs to the open file: the kernel releases it however this process ends.
    with open(folder / "serving", "a+b") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            process = lock.read().decode()
            raise CommandError(
                f"process {process} already serves from state folder {folder}: stop it, or choose "
                "another folder with --state-dir"
            ) from None
        lock.truncate(0)
        lock.write(str(os.getpid()).encode())
        lock.flush()
        yield


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        server = socket.create_server((host, port), family=family)
    except OSError as error:
        raise CommandError(
            f"cannot listen on {host} port {port} ({error.strerror or error}): choose others with "
            "--host and --port"
        ) from error
    # asyncio sets TCP_NODELAY only on sockets that name their protocol. Without it, every answer
    # waits for an acknowledgement, 40 ms on Linux.
    return socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP, fileno=server.detach())
