"""Figures of the files in packs, for aggregates that need no file."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"


def upgrade() -> None:
    """Add the figures of the sources of packs."""
    op.add_column("packs", sa.Column("figures", sa.LargeBinary))
