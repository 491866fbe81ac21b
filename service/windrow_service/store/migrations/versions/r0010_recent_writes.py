"""Indexes of the writes of all tables: by time, and of unfinished ones."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Add indexes for pages that show the latest work."""
    is_open = sa.text("lease_until IS NOT NULL")
    op.create_index("ix_writes_updated_at", "writes", ["updated_at"])
    op.create_index(
        "ix_writes_open",
        "writes",
        ["lease_until"],
        sqlite_where=is_open,
        postgresql_where=is_open,
    )
