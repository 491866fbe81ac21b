"""Errors for packages that are missing because an extra is not installed."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass

from windrow_calls.errors import WindrowError


@dataclass(eq=False)
class MissingPackageError(WindrowError):
    """A Python package is not installed."""

    package: str
    extra: str
    message = "{package} is not installed here: {remedy}"
    remedy = "pip install 'windrow-spark[{extra}]', or '.[{extra}]' in a clone"


class ServiceNotInstalledError(WindrowError):
    """The coordinator's own packages are missing here."""

    message = "the coordinator is not installed here: {remedy}"
    remedy = "pip install 'windrow-spark[service]', or '.[service]' in a clone"


def require_package(package: str, extra: str) -> None:
    """Make sure that a package is installed.

    Args:
        package: The name by which it is imported.
        extra: The extra of this distribution that brings it.
    """
    if importlib.util.find_spec(package) is None:
        raise MissingPackageError(package.replace("_", "-"), extra)


def require_service() -> None:
    """Make sure that the coordinator's packages are installed."""
    if importlib.util.find_spec("fastapi") is None:
        raise ServiceNotInstalledError
