"""Deltas, leases of refreshes and plans, plans in chunks, idempotency keys, tokens."""

from __future__ import annotations

import json
from datetime import datetime

import pyarrow as pa
import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add what replicas need to share work. Plans are dropped, since they are soon made again."""
    sqlite = op.get_bind().dialect.name == "sqlite"
    with op.batch_alter_table(
        "tables",
        # Only a newly created SQLite table can guarantee never to reuse a number.
        recreate="always" if sqlite else "never",
        table_kwargs={"sqlite_autoincrement": True},
    ) as tables:
        tables.add_column(sa.Column("checked_at", sa.DateTime(timezone=True)))
    _date_snapshots()
    _bound_manifests()
    _make_listings_and_refreshes()
    _make_plans()
    _make_keys_and_tokens()
    if op.get_bind().dialect.name == "postgresql":
        # These bytes are compressed already: compressing again costs time, now and at every read.
        for table in ("manifests", "plan_chunks", "listings"):
            op.execute(f"ALTER TABLE {table} ALTER COLUMN body SET STORAGE EXTERNAL")


def _date_snapshots() -> None:
    op.add_column("snapshots", sa.Column("created_at", sa.DateTime(timezone=True)))
    snapshots = sa.table(
        "snapshots",
        sa.column("table_id", sa.Integer),
        sa.column("snapshot_id", sa.Integer),
        sa.column("info", sa.Text),
        sa.column("created_at", sa.DateTime(timezone=True)),
    )
    connection = op.get_bind()
    rows = connection.execute(
        sa.select(snapshots.c.table_id, snapshots.c.snapshot_id, snapshots.c.info)
    ).all()
    for table_id, snapshot_id, info in rows:
        # Python 3.10 cannot parse a Z.
        created_at = datetime.fromisoformat(json.loads(info)["created_at"].replace("Z", "+00:00"))
        connection.execute(
            sa.update(snapshots)
            .where(snapshots.c.table_id == table_id, snapshots.c.snapshot_id == snapshot_id)
            .values(created_at=created_at)
        )
    with op.batch_alter_table("snapshots") as batch:
        batch.alter_column("created_at", nullable=False)


def _bound_manifests() -> None:
    op.add_column("snapshot_manifests", sa.Column("last_path", sa.Text))
    op.add_column("snapshot_manifests", sa.Column("removed", sa.LargeBinary))
    manifests = sa.table(
        "manifests", sa.column("manifest_id", sa.String), sa.column("body", sa.LargeBinary)
    )
    entries = sa.table(
        "snapshot_manifests",
        sa.column("table_id", sa.Integer),
        sa.column("snapshot_id", sa.Integer),
        sa.column("manifest_id", sa.String),
        sa.column("last_path", sa.Text),
    )
    snapshots = sa.table(
        "snapshots",
        sa.column("table_id", sa.Integer),
        sa.column("snapshot_id", sa.Integer),
        sa.column("bloom_columns", sa.Text),
    )
    op.add_column("snapshots", sa.Column("bloom_columns", sa.Text))
    connection = op.get_bind()
    connection.execute(sa.update(snapshots).values(bloom_columns="[]"))
    for (manifest_id,) in connection.execute(sa.select(manifests.c.manifest_id)).all():
        body = connection.scalar(
            sa.select(manifests.c.body).where(manifests.c.manifest_id == manifest_id)
        )
        with pa.ipc.open_stream(body) as stream:
            files = stream.read_all()
        here = entries.c.manifest_id == manifest_id
        last_path = files["path"][-1].as_py()
        connection.execute(sa.update(entries).where(here).values(last_path=last_path))
        if "bloom" in files.column_names:
            names = json.dumps(files.schema.field("bloom").type.names)
            uses = sa.select(entries.c.table_id, entries.c.snapshot_id).where(here)
            connection.execute(
                sa.update(snapshots)
                .where(sa.tuple_(snapshots.c.table_id, snapshots.c.snapshot_id).in_(uses))
                .values(bloom_columns=names)
            )
    with op.batch_alter_table("snapshot_manifests") as batch:
        batch.alter_column("last_path", nullable=False)
    with op.batch_alter_table("snapshots") as batch:
        batch.alter_column("bloom_columns", nullable=False)


def _make_listings_and_refreshes() -> None:
    op.create_table(
        "listings",
        sa.Column("table_id", sa.Integer, nullable=False),
        sa.Column("snapshot_id", sa.Integer, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("table_id", name="pk_listings"),
        sa.ForeignKeyConstraint(
            ["table_id"], ["tables.table_id"], name="fk_listings_table_id", ondelete="CASCADE"
        ),
    )
    op.create_table(
        "refreshes",
        sa.Column("table_id", sa.Integer, nullable=False),
        sa.Column("refresh_id", sa.String(32), nullable=False),
        sa.Column("full_listing", sa.Boolean, nullable=False),
        sa.Column("lease_until", sa.DateTime(timezone=True)),
        sa.Column("cancelled", sa.Boolean, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("previous", sa.Text),
        sa.PrimaryKeyConstraint("table_id", name="pk_refreshes"),
        sa.ForeignKeyConstraint(
            ["table_id"], ["tables.table_id"], name="fk_refreshes_table_id", ondelete="CASCADE"
        ),
    )


def _make_plans() -> None:
    op.drop_table("plans")
    op.create_table(
        "plan_bodies",
        sa.Column("body_id", sa.String(32), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("size_bytes", sa.BigInteger, nullable=False),
        sa.Column("head", sa.LargeBinary, nullable=False),
        sa.Column("tail", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("body_id", name="pk_plan_bodies"),
    )
    op.create_index("ix_plan_bodies_created_at", "plan_bodies", ["created_at"])
    op.create_table(
        "plan_chunks",
        sa.Column("body_id", sa.String(32), nullable=False),
        sa.Column("first_group", sa.Integer, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("body_id", "first_group", name="pk_plan_chunks"),
        sa.ForeignKeyConstraint(
            ["body_id"], ["plan_bodies.body_id"], name="fk_plan_chunks_body_id", ondelete="CASCADE"
        ),
    )
    op.create_table(
        "plans",
        sa.Column("plan_id", sa.String(32), nullable=False),
        sa.Column("principal", sa.String(128), nullable=False),
        sa.Column("table_id", sa.Integer, nullable=False),
        sa.Column("snapshot_id", sa.Integer),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("lease_until", sa.DateTime(timezone=True)),
        sa.Column("request", sa.Text, nullable=False),
        sa.Column("request_key", sa.String(64)),
        sa.Column("info", sa.Text),
        sa.Column("problem", sa.Text),
        sa.Column("body_id", sa.String(32)),
        sa.PrimaryKeyConstraint("plan_id", name="pk_plans"),
        sa.ForeignKeyConstraint(["body_id"], ["plan_bodies.body_id"], name="fk_plans_body_id"),
    )
    op.create_index("ix_plans_expires_at", "plans", ["expires_at"])
    op.create_index("ix_plans_body_id", "plans", ["body_id"])
    op.create_index("ix_plans_request_key", "plans", ["request_key", "expires_at"])
    op.create_index("ix_plans_table_id", "plans", ["table_id", "snapshot_id"])


def _make_keys_and_tokens() -> None:
    op.create_table(
        "idempotency_keys",
        sa.Column("principal", sa.String(128), nullable=False),
        sa.Column("key", sa.String(128), nullable=False),
        sa.Column("fingerprint", sa.String(64), nullable=False),
        sa.Column("answer", sa.Text),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("principal", "key", name="pk_idempotency_keys"),
    )
    op.create_index("ix_idempotency_keys_expires_at", "idempotency_keys", ["expires_at"])
    op.create_table(
        "tokens",
        sa.Column("token_id", sa.String(32), nullable=False),
        sa.Column("name", sa.String(128), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("scopes", sa.String(256), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True)),
        sa.Column("revoked_at", sa.DateTime(timezone=True)),
        sa.PrimaryKeyConstraint("token_id", name="pk_tokens"),
        sa.UniqueConstraint("digest", name="uq_tokens_digest"),
    )
