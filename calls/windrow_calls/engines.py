"""Tables for engines other than Spark, which read them as Iceberg tables."""

from __future__ import annotations

from urllib.parse import quote

from pydantic import BaseModel, Field

from windrow_calls.transport import Calls, read_answer

_BETWEEN_LEVELS = "\x1f"
# Of tables whose names have no dot.
_DEFAULT = "default"


class EngineCalls(Calls):
    """Calls about tables for other engines."""

    def describe_for_engines(self, name: str) -> str:
        """Describe a table for engines other than Spark, so that their first call finds it ready.

        Returns:
            Where the description of the current snapshot is: a path as the coordinator sees it.

        Raises:
            ProblemError: Such engines cannot read the table; the error says why, and what to do.

        Example:
            client.describe_for_engines("sales.events")
        """
        *levels, table = name.split(".")
        namespace = quote(_BETWEEN_LEVELS.join(levels or [_DEFAULT]), safe="")
        answer = self._transport.call(
            "GET",
            f"/iceberg/v1/namespaces/{namespace}/tables/{quote(table, safe='')}",
            params={"snapshots": "refs"},
            headers={"Accept": "application/problem+json, application/json"},
        )
        return read_answer(_Described, answer).metadata_location


class _Described(BaseModel):
    metadata_location: str = Field(alias="metadata-location")
