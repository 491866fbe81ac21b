"""Lists of partitions."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Add a list of partitions for each table."""
    op.add_column("tables", sa.Column("partition_count", sa.Integer))
    op.create_table(
        "partition_lists",
        sa.Column("table_id", sa.Integer, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("table_id", name="pk_partition_lists"),
        sa.ForeignKeyConstraint(
            ["table_id"],
            ["tables.table_id"],
            name="fk_partition_lists_table_id",
            ondelete="CASCADE",
        ),
    )
