"""Tables, snapshots, manifests and plans."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision: str | None = None


def upgrade() -> None:
    """Create the first tables."""
    op.create_table(
        "secrets",
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("value", sa.String(256), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_secrets"),
    )
    op.create_table(
        "tables",
        sa.Column("table_id", sa.Integer, nullable=False),
        sa.Column("name", sa.String(256), nullable=False),
        sa.Column("version", sa.String(32), nullable=False),
        sa.Column("definition", sa.Text, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_snapshot_id", sa.Integer, nullable=False),
        sa.Column("current_snapshot_id", sa.Integer),
        sa.PrimaryKeyConstraint("table_id", name="pk_tables"),
        sa.UniqueConstraint("name", name="uq_tables_name"),
    )
    op.create_table(
        "snapshots",
        sa.Column("table_id", sa.Integer, nullable=False),
        sa.Column("snapshot_id", sa.Integer, nullable=False),
        sa.Column("info", sa.Text, nullable=False),
        sa.Column("data_schema", sa.LargeBinary, nullable=False),
        sa.Column("partition_schema", sa.LargeBinary, nullable=False),
        sa.Column("ranges", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("table_id", "snapshot_id", name="pk_snapshots"),
        sa.ForeignKeyConstraint(
            ["table_id"], ["tables.table_id"], name="fk_snapshots_table_id", ondelete="CASCADE"
        ),
    )
    op.create_table(
        "manifests",
        sa.Column("manifest_id", sa.String(64), nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("manifest_id", name="pk_manifests"),
    )
    op.create_table(
        "snapshot_manifests",
        sa.Column("table_id", sa.Integer, nullable=False),
        sa.Column("snapshot_id", sa.Integer, nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("manifest_id", sa.String(64), nullable=False),
        sa.Column("first_path", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint(
            "table_id", "snapshot_id", "position", name="pk_snapshot_manifests"
        ),
        sa.ForeignKeyConstraint(
            ["manifest_id"], ["manifests.manifest_id"], name="fk_snapshot_manifests_manifest_id"
        ),
        sa.ForeignKeyConstraint(
            ["table_id", "snapshot_id"],
            ["snapshots.table_id", "snapshots.snapshot_id"],
            name="fk_snapshot_manifests_table_id",
            ondelete="CASCADE",
        ),
    )
    op.create_index(
        "ix_snapshot_manifests_manifest_id", "snapshot_manifests", ["manifest_id"], unique=False
    )
    op.create_table(
        "plans",
        sa.Column("plan_id", sa.String(64), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("info", sa.Text, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("plan_id", name="pk_plans"),
    )
    op.create_index("ix_plans_expires_at", "plans", ["expires_at"], unique=False)
