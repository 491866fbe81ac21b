"""Versions in the logs of Delta and Iceberg tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Add a snapshot's version in the table's own log, and the version that a refresh asked for."""
    op.add_column("snapshots", sa.Column("table_version", sa.String(256)))
    op.add_column("snapshots", sa.Column("asked_version", sa.String(256)))
