"""Serve the coordinator: `python -m windrow_service`, set up by the environment."""

from __future__ import annotations

import uvicorn

from windrow_service.bootstrap import build_app
from windrow_service.settings import Settings

# How long requests that still run may take when it is told to stop.
_STOP_TIMEOUT_S = 10


def main() -> None:
    """Serve until stopped."""
    settings = Settings.model_validate({})
    uvicorn.run(
        build_app(settings, owns_process=True),
        host=settings.host,
        port=settings.port,
        timeout_graceful_shutdown=_STOP_TIMEOUT_S,
    )


if __name__ == "__main__":
    main()
