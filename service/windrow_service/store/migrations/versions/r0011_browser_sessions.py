"""Browser sessions."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    """Add a table of browser sessions."""
    op.create_table(
        "browser_sessions",
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("principal", sa.String(128), nullable=False),
        sa.Column("token_digest", sa.String(64)),
        sa.Column("issuer", sa.Text),
        sa.Column("claims", sa.Text),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("digest", name="pk_browser_sessions"),
    )
    op.create_index("ix_browser_sessions_principal", "browser_sessions", ["principal"])
    op.create_index("ix_browser_sessions_expires_at", "browser_sessions", ["expires_at"])
