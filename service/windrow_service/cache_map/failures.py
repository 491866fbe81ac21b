"""What an error of the Redis server means, and what to do about it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import NamedTuple

from redis import exceptions

from windrow_service.usecases.caches.errors import CacheUnavailableError


class Trouble(NamedTuple):
    """What is wrong with the server.

    Attributes:
        reason: What is wrong. Nothing in it is from the server, which may quote what it was sent.
        advice: What to do about it.
    """

    reason: str
    advice: str = CacheUnavailableError.advice


UNREACHED = Trouble("no connection")
_SLOW = Trouble("it does not answer in time")
_FULL = Trouble("its memory is full", "raise the maxmemory of the Redis server")
_REPLICA = Trouble(
    "it takes no writes", "name the primary server instead of a replica in WINDROW_REDIS_URL"
)
# By the word that an error of the server begins with. It follows a dash if a script failed, and a
# quotation mark if that was one of several commands.
_BY_WORD: Mapping[str, Trouble] = {
    "MISCONF": Trouble(
        "it cannot save its data", "make sure that the disk of the Redis server has room"
    ),
    "NOREPLICAS": Trouble(
        "it lacks replicas", "make sure that the replicas of the Redis server run"
    ),
    "OOM": _FULL,
    "READONLY": _REPLICA,
}
_WORD = re.compile(r"(?:^|[-'])([A-Z]+) ")
# By class, special ones first; the client takes the word away from errors that have a class.
_BY_CLASS: Mapping[type[Exception], Trouble] = {
    exceptions.OutOfMemoryError: _FULL,
    exceptions.ReadOnlyError: _REPLICA,
    exceptions.AuthenticationError: Trouble(
        "it refuses the password", "correct the password in WINDROW_REDIS_URL"
    ),
    exceptions.NoPermissionError: Trouble(
        "its user lacks rights", "give the user in WINDROW_REDIS_URL all rights on its keys"
    ),
    exceptions.BusyLoadingError: Trouble("it is still loading its data", "wait until it has"),
    exceptions.TimeoutError: _SLOW,
    exceptions.ConnectionError: UNREACHED,
    asyncio.TimeoutError: _SLOW,
    OSError: UNREACHED,
}


def trouble_of(error: Exception) -> Trouble:
    """Return what an error means."""
    for word in _WORD.findall(str(error)):
        if word in _BY_WORD:
            return _BY_WORD[word]
    by_class = (trouble for kind, trouble in _BY_CLASS.items() if isinstance(error, kind))
    return next(by_class, Trouble(f"it answers with {type(error).__name__}"))
