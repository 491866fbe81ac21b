"""Delete files of transactional tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Add the delete files of each snapshot."""
    op.add_column("snapshots", sa.Column("delete_files", sa.LargeBinary))
