"""What the time was, for databases without a server."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    """Add the note of what the time was at a moment of a machine's run."""
    op.create_table(
        "clock",
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("run", sa.String(64), nullable=False),
        sa.Column("run_seconds", sa.Float, nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_clock"),
    )
