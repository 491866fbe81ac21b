"""The wire models: bodies of the coordinator's calls, as pydantic models."""

from windrow_core.models import *  # noqa: F403
from windrow_core.models import __all__ as __all__
