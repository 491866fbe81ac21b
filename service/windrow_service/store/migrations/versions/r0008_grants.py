"""Grants of tokens: scopes on some tables or workers."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Add what a token allows beside its scopes; tokens without it keep what they have."""
    op.add_column("tokens", sa.Column("grants", sa.Text))
