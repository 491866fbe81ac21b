"""Cache rules."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add the rules that say which files of a table are cacheable."""
    op.create_table(
        "cache_rules",
        sa.Column("table_id", sa.Integer, nullable=False),
        sa.Column("name", sa.String(128), nullable=False),
        sa.Column("version", sa.String(32), nullable=False),
        sa.Column("definition", sa.Text, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True)),
        sa.PrimaryKeyConstraint("table_id", "name", name="pk_cache_rules"),
        sa.ForeignKeyConstraint(
            ["table_id"], ["tables.table_id"], name="fk_cache_rules_table_id", ondelete="CASCADE"
        ),
    )
    op.create_index("ix_cache_rules_expires_at", "cache_rules", ["expires_at"])
