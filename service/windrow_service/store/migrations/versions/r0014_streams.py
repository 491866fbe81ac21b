"""Streams that write to tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    """Add the newest batch of each streaming query, and the batches that a write contains."""
    op.add_column("writes", sa.Column("batch", sa.Text))
    op.create_table(
        "streams",
        sa.Column("table_id", sa.Integer, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("query_id", sa.String(36), nullable=False),
        sa.Column("batch_id", sa.BigInteger, nullable=False),
        sa.Column("query_name", sa.Text),
        sa.Column("checkpoint", sa.Text),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("table_id", "number", name="pk_streams"),
        sa.UniqueConstraint("table_id", "query_id", name="uq_streams_table_id"),
        sa.ForeignKeyConstraint(
            ["table_id"], ["tables.table_id"], name="fk_streams_table_id", ondelete="CASCADE"
        ),
    )
