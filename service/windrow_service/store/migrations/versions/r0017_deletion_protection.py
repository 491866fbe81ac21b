"""Tables that are protected from deletion."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    """Add the flag of tables that are protected."""
    column = sa.Column("deletion_protection", sa.Boolean, nullable=False, server_default=sa.false())
    op.add_column("tables", column)
