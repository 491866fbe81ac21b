"""Run by Alembic: applies the revisions on the connection that `migrate` passes."""

from __future__ import annotations

from alembic import context

from windrow_service.store.schema import metadata

connection = context.config.attributes["connection"]
# The caller has begun the transaction and holds the lock: all revisions are one change.
context.configure(connection=connection, target_metadata=metadata, transactional_ddl=False)
context.run_migrations()
