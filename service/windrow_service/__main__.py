"""Serve the coordinator: `python -m windrow_service`, set up by the environment."""

from __future__ import annotations

import asyncio
import sys

import uvicorn
from pydantic import ValidationError
from pydantic_core import ErrorDetails
from pydantic_settings import SettingsError

from windrow_service.bootstrap import build_app, check
from windrow_service.settings import Settings
from windrow_service.usecases.errors import UseCaseError

# How long requests that still run may take when it is told to stop.
_STOP_TIMEOUT_S = 10


def main() -> None:
    """Serve until stopped; what keeps it from starting is said in one line each."""
    try:
        settings = Settings.model_validate({})
        # Before it listens: what goes wrong once it has started ends in a traceback.
        asyncio.run(check(settings))
    except ValidationError as error:
        sys.exit("\n".join(map(_line_of, error.errors())))
    except (SettingsError, UseCaseError) as error:
        sys.exit(f"windrow_service: {error}")
    uvicorn.run(
        build_app(settings, owns_process=True),
        host=settings.host,
        port=settings.port,
        timeout_graceful_shutdown=_STOP_TIMEOUT_S,
        # Proxies keep one; a line for each of many small answers costs a tenth of them.
        access_log=False,
    )


def _line_of(issue: ErrorDetails) -> str:
    name = "__".join(str(part) for part in issue["loc"]).upper()
    said = issue["msg"].removeprefix("Value error, ")
    return f"windrow_service: {f'WINDROW_{name}: ' if name else ''}{said}"


if __name__ == "__main__":
    main()
