"""Writes."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Add the writes to each table, and their outcomes."""
    op.create_table(
        "writes",
        sa.Column("table_id", sa.Integer, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("write_id", sa.String(32), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("mode", sa.String(32), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("process", sa.Integer, nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("state_since", sa.DateTime(timezone=True), nullable=False),
        sa.Column("lease_until", sa.DateTime(timezone=True)),
        sa.Column("snapshot_id", sa.Integer),
        sa.Column("report", sa.Text),
        sa.Column("key_report", sa.LargeBinary),
        sa.PrimaryKeyConstraint("table_id", "number", name="pk_writes"),
        sa.UniqueConstraint("table_id", "write_id", name="uq_writes_table_id"),
        sa.ForeignKeyConstraint(
            ["table_id"], ["tables.table_id"], name="fk_writes_table_id", ondelete="CASCADE"
        ),
    )
    committing = sa.text("state = 'committing'")
    op.create_index(
        "ix_writes_committing",
        "writes",
        ["table_id"],
        unique=True,
        sqlite_where=committing,
        postgresql_where=committing,
    )
