"""What scans of plans took, and which plans failed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    """Add the reports of drivers to the history of plans."""
    op.add_column(
        "plan_history",
        sa.Column("is_failed", sa.Boolean(), nullable=False, server_default=sa.false()),
    )
    op.add_column("plan_history", sa.Column("scan", sa.Text()))
    op.add_column("plan_history", sa.Column("scan_seconds", sa.Float()))
    # The status is a field of the body; a failed plan has no summary.
    op.execute('UPDATE plan_history SET is_failed = TRUE WHERE body LIKE \'%"status":"failed"%\'')
