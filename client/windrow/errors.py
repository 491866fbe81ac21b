"""Errors to catch, of calls to a coordinator."""

from windrow_calls.errors import *  # noqa: F403
from windrow_calls.errors import __all__ as __all__
