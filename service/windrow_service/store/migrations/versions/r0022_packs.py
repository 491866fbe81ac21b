"""Packs: files elsewhere that hold the rows of many small files of a table."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"


def upgrade() -> None:
    """Add the packs and their sources."""
    op.create_table(
        "packs",
        sa.Column("pack_id", sa.String(64), nullable=False),
        sa.Column("table_id", sa.Integer, nullable=False),
        sa.Column("definition", sa.String(64), nullable=False),
        sa.Column("path", sa.Text, nullable=False),
        sa.Column("size_bytes", sa.BigInteger, nullable=False),
        sa.Column("row_count", sa.BigInteger, nullable=False),
        sa.Column("source_count", sa.Integer, nullable=False),
        sa.Column("sources", sa.LargeBinary),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("made_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("gone_since", sa.DateTime(timezone=True)),
        sa.Column("withdrawn_at", sa.DateTime(timezone=True)),
        sa.Column("withdrawn_because", sa.Text),
        sa.Column("removed_at", sa.DateTime(timezone=True)),
        sa.PrimaryKeyConstraint("pack_id", name="pk_packs"),
    )
    op.create_index("ix_packs_table_id", "packs", ["table_id"])
