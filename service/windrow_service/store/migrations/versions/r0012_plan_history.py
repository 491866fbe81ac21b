"""Plan history."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    """Add a table of figures that outlive their plans."""
    op.create_table(
        "plan_history",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer, "sqlite"), nullable=False),
        sa.Column("plan_id", sa.String(32), nullable=False),
        sa.Column("table_name", sa.String(256), nullable=False),
        sa.Column("principal", sa.String(128), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_plan_history"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_plan_history_plan_id", "plan_history", ["plan_id"])
    for column in ("created_at", "principal", "table_name"):
        op.create_index(f"ix_plan_history_{column}", "plan_history", [column, "number"])
