"""Runs of packers, by which is known what one that was killed has left."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"


def upgrade() -> None:
    """Add the runs."""
    op.create_table(
        "pack_runs",
        sa.Column("run_id", sa.String(16), nullable=False),
        sa.Column("table_id", sa.Integer, nullable=False),
        sa.Column("home", sa.String(64), nullable=False),
        sa.Column("lease_until", sa.DateTime(timezone=True), nullable=False),
        sa.Column("lapsed_at", sa.DateTime(timezone=True)),
        sa.PrimaryKeyConstraint("run_id", name="pk_pack_runs"),
    )
    op.create_index("ix_pack_runs_table_id", "pack_runs", ["table_id"])
