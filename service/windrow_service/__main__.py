"""Serve the coordinator: `python -m windrow_service`, configured by the environment."""

from __future__ import annotations

import asyncio
import sys

import uvicorn
from pydantic import ValidationError
from pydantic_core import ErrorDetails
from pydantic_settings import SettingsError

from windrow_service.bootstrap import check
from windrow_service.serving import logging, server_config
from windrow_service.settings import Settings
from windrow_service.usecases.errors import UseCaseError


def main() -> None:
    """Serve until stopped; if that is not possible, print each reason as one line."""
    try:
        settings = Settings.model_validate({})
        # Before the server listens: errors after its start end in a traceback.
        asyncio.run(check(settings))
    except ValidationError as error:
        sys.exit("\n".join(map(_line_of, error.errors())))
    except (SettingsError, UseCaseError) as error:
        sys.exit(f"windrow_service: {error}")
    with logging(settings, owns_process=True):
        server = uvicorn.Server(server_config(settings, owns_process=True))
        server.run()
    if not server.started:
        sys.exit("windrow_service: it did not start; see its log above")


def _line_of(issue: ErrorDetails) -> str:
    name = "__".join(str(part) for part in issue["loc"]).upper()
    reason = issue["msg"].removeprefix("Value error, ")
    return f"windrow_service: {f'WINDROW_{name}: ' if name else ''}{reason}"


if __name__ == "__main__":
    main()
