"""Policies of maintenance, its budget, its rounds and its receipts."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    """Add policies by pattern, receipts, and the row that all tables share."""
    op.create_table(
        "policies",
        sa.Column("pattern", sa.String(256), nullable=False),
        sa.Column("version", sa.String(32), nullable=False),
        sa.Column("definition", sa.Text, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("pattern", name="pk_policies"),
    )
    op.create_table(
        "maintenance",
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("version", sa.String(32)),
        sa.Column("budget", sa.Text),
        sa.Column("holder", sa.String(32)),
        sa.Column("lease_until", sa.DateTime(timezone=True)),
        sa.Column("left_at", sa.DateTime(timezone=True)),
        sa.Column("left_seconds", sa.Float, nullable=False, server_default="0"),
        sa.Column("left_bytes", sa.Float, nullable=False, server_default="0"),
        sa.Column("round", sa.Text),
        sa.PrimaryKeyConstraint("number", name="pk_maintenance"),
    )
    op.create_table(
        "receipts",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer, "sqlite"), nullable=False),
        sa.Column("table_name", sa.String(256), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("reason", sa.String(32), nullable=False),
        sa.Column("first_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("times", sa.Integer, nullable=False),
        sa.Column("claim", sa.String(32)),
        sa.Column("worker", sa.String(128)),
        sa.Column("lease_until", sa.DateTime(timezone=True)),
        sa.Column("body", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_receipts"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_receipts_claim", "receipts", ["claim"])
    op.create_index("ix_receipts_table_name", "receipts", ["table_name", "number"])
    op.create_index("ix_receipts_state", "receipts", ["state", "last_at"])
