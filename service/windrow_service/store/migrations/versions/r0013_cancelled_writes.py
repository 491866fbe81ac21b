"""Writes that somebody cancelled."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    """Add the principal that cancelled a write."""
    op.add_column("writes", sa.Column("cancelled_by", sa.String(128)))
