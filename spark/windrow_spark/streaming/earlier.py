"""Earlier queries that have written to a table, of which a new one may be a second start."""

from __future__ import annotations

from dataclasses import dataclass

from windrow_calls.coordinator import Coordinator
from windrow_spark.streaming.queries import Query
from windrow_spark.streaming.waiting import waiting_folders


@dataclass(frozen=True, slots=True)
class EarlierQuery:
    """A query with batches in a table, or waiting beside it.

    Attributes:
        query: The query.
        batch_id: Its newest batch.
    """

    query: Query
    batch_id: int

    def likeness(self, query: Query) -> str | None:
        """Return what another query has in common with this one; None if that is nothing."""
        if query.checkpoint is not None and query.checkpoint == self.query.checkpoint:
            return f"checkpoint {query.checkpoint!r}"
        if query.name is not None and query.name == self.query.name:
            return f"name {query.name!r}"
        return None


def earlier_queries(client: Coordinator, table: str, location: str) -> list[EarlierQuery]:
    """Return the queries that have written to a table, those that began last first.

    Args:
        client: Client of the coordinator that knows the table.
        table: Name of the table.
        location: Absolute path of the table.
    """
    queries = []
    for folder in waiting_folders(location):
        for batch in folder.batches()[-1:]:
            query = Query(folder.query_id, batch.query_name, batch.checkpoint)
            queries.append(EarlierQuery(query, batch.batch_id))
    for one in client.streams(table):
        query = Query(one.query_id, one.query_name, one.checkpoint)
        queries.append(EarlierQuery(query, one.batch_id))
    return queries
