"""The tables of the metadata database."""

from __future__ import annotations

import sqlalchemy as sa

# Constraint names must not depend on the database, or migrations could not name them.
metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)

secrets = sa.Table(
    "secrets",
    metadata,
    sa.Column("name", sa.String(64), primary_key=True),
    sa.Column("value", sa.String(256), nullable=False),
)

tables = sa.Table(
    "tables",
    metadata,
    sa.Column("table_id", sa.Integer, primary_key=True),
    sa.Column("name", sa.String(256), nullable=False, unique=True),
    sa.Column("version", sa.String(32), nullable=False),
    sa.Column("definition", sa.Text, nullable=False),
    sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
    sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
    # Snapshot ids are never used twice, not even after the definition has changed.
    sa.Column("last_snapshot_id", sa.Integer, nullable=False, default=0),
    sa.Column("current_snapshot_id", sa.Integer),
)

snapshots = sa.Table(
    "snapshots",
    metadata,
    sa.Column("table_id", sa.ForeignKey("tables.table_id", ondelete="CASCADE"), primary_key=True),
    sa.Column("snapshot_id", sa.Integer, primary_key=True),
    sa.Column("info", sa.Text, nullable=False),
    sa.Column("data_schema", sa.LargeBinary, nullable=False),
    sa.Column("partition_schema", sa.LargeBinary, nullable=False),
    sa.Column("ranges", sa.LargeBinary, nullable=False),
)

manifests = sa.Table(
    "manifests",
    metadata,
    sa.Column("manifest_id", sa.String(64), primary_key=True),
    sa.Column("body", sa.LargeBinary, nullable=False),
)

snapshot_manifests = sa.Table(
    "snapshot_manifests",
    metadata,
    sa.Column("table_id", sa.Integer, primary_key=True),
    sa.Column("snapshot_id", sa.Integer, primary_key=True),
    sa.Column("position", sa.Integer, primary_key=True),
    sa.Column("manifest_id", sa.ForeignKey("manifests.manifest_id"), nullable=False, index=True),
    sa.Column("first_path", sa.Text, nullable=False),
    sa.ForeignKeyConstraint(
        ["table_id", "snapshot_id"],
        ["snapshots.table_id", "snapshots.snapshot_id"],
        ondelete="CASCADE",
    ),
)

plans = sa.Table(
    "plans",
    metadata,
    sa.Column("plan_id", sa.String(64), primary_key=True),
    sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False, index=True),
    sa.Column("info", sa.Text, nullable=False),
    sa.Column("body", sa.LargeBinary, nullable=False),
)
