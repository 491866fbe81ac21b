"""Serve the coordinator: `python -m windrow_service`, set up by the environment."""

from __future__ import annotations

import uvicorn

from windrow_service.bootstrap import build_app
from windrow_service.settings import Settings


def main() -> None:
    """Serve until stopped."""
    settings = Settings.model_validate({})
    uvicorn.run(build_app(settings), host=settings.host, port=settings.port)


if __name__ == "__main__":
    main()
