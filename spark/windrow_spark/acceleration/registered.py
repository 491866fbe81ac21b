"""The tables of a coordinator by their locations, looked up by every query."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterable
from fnmatch import fnmatchcase

from windrow_calls.coordinator import Coordinator
from windrow_calls.errors import WindrowError
from windrow_core.files.schemes import with_canonical_scheme
from windrow_core.models import TableInfo

# A table that is registered later is accelerated after this time at the latest.
_RENEW_S = 30.0


class Registered:
    """Tables by location; the list is renewed in the background while queries use the last one.

    Args:
        client: The coordinator's client.
        patterns: Which tables, such as `sales.*`; case does not matter.
    """

    def __init__(self, client: Coordinator, patterns: Iterable[str]) -> None:
        self._client = client
        self._patterns = [pattern.lower() for pattern in patterns]
        self._lock = threading.Lock()
        self._renewing = False
        self.renew()

    def renew(self) -> None:
        """Ask the coordinator for its tables.

        Raises:
            CoordinatorUnreachableError: It does not answer.
        """
        by_location: dict[str, list[TableInfo]] = {}
        for table in self._client.tables():
            if any(fnmatchcase(table.name.lower(), pattern) for pattern in self._patterns):
                by_location.setdefault(plain_location(table.definition.location), []).append(table)
        self._by_location = by_location
        self._renewed_at = time.monotonic()

    def at(self, location: str) -> list[TableInfo]:
        """Return the tables at a location."""
        with self._lock:
            due = time.monotonic() - self._renewed_at > _RENEW_S and not self._renewing
            self._renewing |= due
        if due:
            threading.Thread(target=self._renew_later, name="windrow-tables", daemon=True).start()
        return self._by_location.get(plain_location(location), [])

    def _renew_later(self) -> None:
        try:
            self.renew()
        except WindrowError:
            # The next plan of a table reports it.
            self._renewed_at = time.monotonic()
        finally:
            self._renewing = False


def plain_location(location: str) -> str:
    """Return a location as text that is equal for equal locations."""
    return with_canonical_scheme(re.sub("^file:(//)?(?=/)", "", location)).rstrip("/") or "/"
