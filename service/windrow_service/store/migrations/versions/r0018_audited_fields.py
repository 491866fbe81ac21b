"""Values in the audit log."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    """Add the fields that a change altered."""
    op.add_column("audit", sa.Column("fields", sa.Text))
