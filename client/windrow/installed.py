"""Whether the coordinator's own packages are here."""

from __future__ import annotations

import importlib.util

from windrow.errors import WindrowError


class ServiceNotInstalledError(WindrowError):
    """The coordinator's own packages are missing here."""

    message = "the coordinator is not installed here: {remedy}"
    remedy = "pip install 'windrow-spark[service]', or '.[service]' in a clone"


def require_service() -> None:
    """Make sure that the coordinator's packages are here.

    Raises:
        ServiceNotInstalledError: They are not.
    """
    if importlib.util.find_spec("fastapi") is None:
        raise ServiceNotInstalledError
