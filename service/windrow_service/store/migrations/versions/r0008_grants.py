"""Grants of tokens: scopes on some tables or workers."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Add grants on some tables or workers; tokens without any keep their scopes."""
    op.add_column("tokens", sa.Column("grants", sa.Text))
