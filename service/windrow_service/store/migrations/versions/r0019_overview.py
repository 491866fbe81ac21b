"""Workers of maintenance, and figures by the hour."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    """Add the workers that ask for work, and figures of all tables and plans by the hour."""
    op.create_table(
        "maintainers",
        sa.Column("worker", sa.String(128), nullable=False),
        sa.Column("pattern", sa.String(256), nullable=False),
        sa.Column("seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("worker", name="pk_maintainers"),
    )
    op.create_table(
        "hours",
        sa.Column("began_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("began_at", name="pk_hours"),
    )
