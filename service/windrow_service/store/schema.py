"""The tables of the metadata database, as created by the newest revision in `migrations`."""

from __future__ import annotations

import sqlalchemy as sa

# Constraint names must not depend on the database, or migrations could not refer to them.
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

# Without a database server: what the time was at a moment of a machine's run since it was started.
clock = sa.Table(
    "clock",
    metadata,
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("run", sa.String(64), nullable=False),
    # How long that run had lasted.
    sa.Column("run_seconds", sa.Float, nullable=False),
    sa.Column("at", sa.DateTime(timezone=True), nullable=False),
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
    # Snapshot ids are never reused, not even after the definition has changed.
    sa.Column("last_snapshot_id", sa.Integer, nullable=False, default=0),
    sa.Column("current_snapshot_id", sa.Integer),
    # When the last listing that the current snapshot agrees with began.
    sa.Column("checked_at", sa.DateTime(timezone=True)),
    # Number of partitions in the table's list in `partition_lists`; null if it has none.
    sa.Column("partition_count", sa.Integer),
    # Triggers of revision 0021 enforce it, whoever asks.
    sa.Column("deletion_protection", sa.Boolean, nullable=False, server_default=sa.false()),
    # Numbers are never reused: a plan or a cache map may outlive its table.
    sqlite_autoincrement=True,
)

# State of a table's folders when they were last listed; opaque here.
listings = sa.Table(
    "listings",
    metadata,
    sa.Column("table_id", sa.ForeignKey("tables.table_id", ondelete="CASCADE"), primary_key=True),
    sa.Column("snapshot_id", sa.Integer, nullable=False),
    sa.Column("body", sa.LargeBinary, nullable=False),
)

# The list of partitions of a table, as an Arrow stream.
partition_lists = sa.Table(
    "partition_lists",
    metadata,
    sa.Column("table_id", sa.ForeignKey("tables.table_id", ondelete="CASCADE"), primary_key=True),
    sa.Column("body", sa.LargeBinary, nullable=False),
)

snapshots = sa.Table(
    "snapshots",
    metadata,
    sa.Column("table_id", sa.ForeignKey("tables.table_id", ondelete="CASCADE"), primary_key=True),
    sa.Column("snapshot_id", sa.Integer, primary_key=True),
    sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
    sa.Column("info", sa.Text, nullable=False),
    sa.Column("data_schema", sa.LargeBinary, nullable=False),
    sa.Column("partition_schema", sa.LargeBinary, nullable=False),
    # Names of the columns for which the manifests have Bloom filters, as JSON.
    sa.Column("bloom_columns", sa.Text, nullable=False),
    sa.Column("ranges", sa.LargeBinary, nullable=False),
    # Only for transactional tables whose rows can be deleted one by one.
    sa.Column("delete_files", sa.LargeBinary),
    # Name of this version in the table's own log, and the name by which a refresh asked for it.
    sa.Column("table_version", sa.String(256)),
    sa.Column("asked_version", sa.String(256)),
)

# Numbers of snapshots, so that lists of all tables do not read them from long texts. A trigger of
# revision 0026 adds them, whichever version writes a snapshot.
snapshot_figures = sa.Table(
    "snapshot_figures",
    metadata,
    sa.Column("table_id", sa.Integer, primary_key=True),
    sa.Column("snapshot_id", sa.Integer, primary_key=True),
    sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
    sa.Column("file_count", sa.BigInteger),
    sa.Column("size_bytes", sa.BigInteger),
    # Null in snapshots of early versions.
    sa.Column("fewest_files", sa.BigInteger),
    sa.ForeignKeyConstraint(
        ["table_id", "snapshot_id"],
        ["snapshots.table_id", "snapshots.snapshot_id"],
        ondelete="CASCADE",
    ),
    sqlite_with_rowid=False,
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
    sa.Column("last_path", sa.Text, nullable=False),
    # Rows of the manifest that this snapshot no longer has; null if it has all rows.
    sa.Column("removed", sa.LargeBinary),
    sa.ForeignKeyConstraint(
        ["table_id", "snapshot_id"],
        ["snapshots.table_id", "snapshots.snapshot_id"],
        ondelete="CASCADE",
    ),
)

# Without a foreign key: a pack outlives its table until its file is removed.
packs = sa.Table(
    "packs",
    metadata,
    # SHA-256 of the pack's bytes.
    sa.Column("pack_id", sa.String(64), primary_key=True),
    sa.Column("table_id", sa.Integer, nullable=False, index=True),
    sa.Column("definition", sa.String(64), nullable=False),
    sa.Column("path", sa.Text, nullable=False),
    sa.Column("size_bytes", sa.BigInteger, nullable=False),
    sa.Column("row_count", sa.BigInteger, nullable=False),
    sa.Column("source_count", sa.Integer, nullable=False),
    # An Arrow stream; null once the pack is removed.
    sa.Column("sources", sa.LargeBinary),
    # Another one, of the figures of their columns; null without, and once the pack is removed.
    sa.Column("figures", sa.LargeBinary),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("made_at", sa.DateTime(timezone=True), nullable=False),
    sa.Column("gone_since", sa.DateTime(timezone=True)),
    sa.Column("withdrawn_at", sa.DateTime(timezone=True)),
    sa.Column("withdrawn_because", sa.Text),
    sa.Column("removed_at", sa.DateTime(timezone=True)),
)

pack_runs = sa.Table(
    "pack_runs",
    metadata,
    sa.Column("run_id", sa.String(16), primary_key=True),
    sa.Column("table_id", sa.Integer, nullable=False, index=True),
    # Name of the table's folder in that of packs.
    sa.Column("home", sa.String(64), nullable=False),
    sa.Column("lease_until", sa.DateTime(timezone=True), nullable=False),
    # Since when it may publish nothing, and what it has left may go.
    sa.Column("lapsed_at", sa.DateTime(timezone=True)),
)

cache_rules = sa.Table(
    "cache_rules",
    metadata,
    sa.Column("table_id", sa.ForeignKey("tables.table_id", ondelete="CASCADE"), primary_key=True),
    sa.Column("name", sa.String(128), primary_key=True),
    sa.Column("version", sa.String(32), nullable=False),
    sa.Column("definition", sa.Text, nullable=False),
    sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
    sa.Column("expires_at", sa.DateTime(timezone=True), index=True),
)

# How tables are maintained, by the pattern of their names.
policies = sa.Table(
    "policies",
    metadata,
    sa.Column("pattern", sa.String(256), primary_key=True),
    sa.Column("version", sa.String(32), nullable=False),
    sa.Column("definition", sa.Text, nullable=False),
    sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
    sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
)

# What all tables share: one row, which also serves as a lock.
maintenance = sa.Table(
    "maintenance",
    metadata,
    sa.Column("number", sa.Integer, primary_key=True),
    # Null until a budget is set.
    sa.Column("version", sa.String(32)),
    sa.Column("budget", sa.Text),
    # Which coordinator decides now; a holder whose lease has run out is presumed dead.
    sa.Column("holder", sa.String(32)),
    sa.Column("lease_until", sa.DateTime(timezone=True)),
    # What is left of the budget, and since when.
    sa.Column("left_at", sa.DateTime(timezone=True)),
    sa.Column("left_seconds", sa.Float, nullable=False, server_default="0"),
    sa.Column("left_bytes", sa.Float, nullable=False, server_default="0"),
    # Figures of the last round of decisions, as JSON.
    sa.Column("round", sa.Text),
)

# What was decided about tables: work, and why others are left alone.
receipts = sa.Table(
    "receipts",
    metadata,
    sa.Column("number", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
    # A name, not an id, since the table may be gone.
    sa.Column("table_name", sa.String(256), nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("reason", sa.String(32), nullable=False),
    sa.Column("first_at", sa.DateTime(timezone=True), nullable=False),
    sa.Column("last_at", sa.DateTime(timezone=True), nullable=False),
    # How often the same was decided; of work, how often it was given to a worker.
    sa.Column("times", sa.Integer, nullable=False),
    # Null for what is left alone; a worker whose lease has run out is presumed dead.
    sa.Column("claim", sa.String(32), index=True),
    sa.Column("worker", sa.String(128)),
    sa.Column("lease_until", sa.DateTime(timezone=True)),
    # Everything else, as JSON.
    sa.Column("body", sa.Text, nullable=False),
    sa.Index("ix_receipts_table_name", "table_name", "number"),
    sa.Index("ix_receipts_state", "state", "last_at"),
    # Numbers are never reused.
    sqlite_autoincrement=True,
)

# Workers that have asked for work of maintenance lately.
maintainers = sa.Table(
    "maintainers",
    metadata,
    sa.Column("worker", sa.String(128), primary_key=True),
    # The tables that it works on.
    sa.Column("pattern", sa.String(256), nullable=False),
    sa.Column("seen_at", sa.DateTime(timezone=True), nullable=False),
)

# Coordinators that share this database, and have said lately that they are there.
replicas = sa.Table(
    "replicas",
    metadata,
    sa.Column("replica_id", sa.String(32), primary_key=True),
    sa.Column("host", sa.String(256), nullable=False),
    sa.Column("process", sa.Integer, nullable=False),
    sa.Column("version", sa.String(64), nullable=False),
    sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
    sa.Column("seen_at", sa.DateTime(timezone=True), nullable=False),
)

# Figures of all tables and of plans, by the hour.
hours = sa.Table(
    "hours",
    metadata,
    sa.Column("began_at", sa.DateTime(timezone=True), primary_key=True),
    sa.Column("body", sa.Text, nullable=False),
)

refreshes = sa.Table(
    "refreshes",
    metadata,
    sa.Column("table_id", sa.ForeignKey("tables.table_id", ondelete="CASCADE"), primary_key=True),
    sa.Column("refresh_id", sa.String(32), nullable=False),
    sa.Column("full_listing", sa.Boolean, nullable=False),
    # Null once the refresh has ended; a runner whose lease has run out is presumed dead.
    sa.Column("lease_until", sa.DateTime(timezone=True)),
    sa.Column("cancelled", sa.Boolean, nullable=False),
    sa.Column("status", sa.Text, nullable=False),
    # Outcome of the previous refresh, for callers that still wait for it.
    sa.Column("previous", sa.Text),
)

writes = sa.Table(
    "writes",
    metadata,
    sa.Column("table_id", sa.ForeignKey("tables.table_id", ondelete="CASCADE"), primary_key=True),
    # In the order in which they began.
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("write_id", sa.String(32), nullable=False),
    sa.Column("kind", sa.String(16), nullable=False),
    sa.Column("mode", sa.String(32), nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("host", sa.String(255), nullable=False),
    sa.Column("process", sa.Integer, nullable=False),
    sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
    sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
    sa.Column("state_since", sa.DateTime(timezone=True), nullable=False),
    # Null once the write has ended.
    sa.Column("lease_until", sa.DateTime(timezone=True)),
    # The snapshot that the write published.
    sa.Column("snapshot_id", sa.Integer),
    # Who cancelled it; null if nobody did.
    sa.Column("cancelled_by", sa.String(128)),
    # Without the figures of single keys: these are many, and stored compressed in `key_report`.
    sa.Column("report", sa.Text),
    sa.Column("key_report", sa.LargeBinary),
    # The batches of a stream that it contains; null for other writes.
    sa.Column("batch", sa.Text),
    sa.Index("ix_writes_updated_at", "updated_at"),
    sa.Index(
        "ix_writes_open",
        "lease_until",
        sqlite_where=sa.text("lease_until IS NOT NULL"),
        postgresql_where=sa.text("lease_until IS NOT NULL"),
    ),
    sa.UniqueConstraint("table_id", "write_id"),
    # Only one write at a time moves files in.
    sa.Index(
        "ix_writes_committing",
        "table_id",
        unique=True,
        sqlite_where=sa.text("state = 'committing'"),
        postgresql_where=sa.text("state = 'committing'"),
    ),
)

# The newest batch of each streaming query that is in a table.
streams = sa.Table(
    "streams",
    metadata,
    sa.Column("table_id", sa.ForeignKey("tables.table_id", ondelete="CASCADE"), primary_key=True),
    # In the order in which they published their first batch.
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("query_id", sa.String(36), nullable=False),
    sa.Column("batch_id", sa.BigInteger, nullable=False),
    sa.Column("query_name", sa.Text),
    sa.Column("checkpoint", sa.Text),
    sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
    sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
    sa.UniqueConstraint("table_id", "query_id"),
)

# The groups of plans; plans for the same request share a body.
plan_bodies = sa.Table(
    "plan_bodies",
    metadata,
    sa.Column("body_id", sa.String(32), primary_key=True),
    sa.Column("created_at", sa.DateTime(timezone=True), nullable=False, index=True),
    sa.Column("size_bytes", sa.BigInteger, nullable=False),
    # The bytes before and after the chunks in the stream.
    sa.Column("head", sa.LargeBinary, nullable=False),
    sa.Column("tail", sa.LargeBinary, nullable=False),
)

plan_chunks = sa.Table(
    "plan_chunks",
    metadata,
    sa.Column(
        "body_id", sa.ForeignKey("plan_bodies.body_id", ondelete="CASCADE"), primary_key=True
    ),
    sa.Column("first_group", sa.Integer, primary_key=True),
    sa.Column("body", sa.LargeBinary, nullable=False),
)

plans = sa.Table(
    "plans",
    metadata,
    sa.Column("plan_id", sa.String(32), primary_key=True),
    sa.Column("principal", sa.String(128), nullable=False),
    sa.Column("table_id", sa.Integer, nullable=False),
    # Null while waiting for a refresh, like the request key.
    sa.Column("snapshot_id", sa.Integer),
    sa.Column("status", sa.String(16), nullable=False),
    sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
    sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False, index=True),
    # Set while the plan is being made; a runner whose lease has run out is presumed dead.
    sa.Column("lease_until", sa.DateTime(timezone=True)),
    sa.Column("request", sa.Text, nullable=False),
    # Digest of what makes two plans equal: table, snapshot, request.
    sa.Column("request_key", sa.String(64)),
    sa.Column("info", sa.Text),
    sa.Column("problem", sa.Text),
    sa.Column("body_id", sa.ForeignKey("plan_bodies.body_id"), index=True),
    sa.Index("ix_plans_request_key", "request_key", "expires_at"),
    sa.Index("ix_plans_table_id", "table_id", "snapshot_id"),
)

idempotency_keys = sa.Table(
    "idempotency_keys",
    metadata,
    sa.Column("principal", sa.String(128), primary_key=True),
    sa.Column("key", sa.String(128), primary_key=True),
    sa.Column("fingerprint", sa.String(64), nullable=False),
    # Null only within the transaction of the change, so nobody else sees a null.
    sa.Column("answer", sa.Text),
    sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False, index=True),
)

# Who changed what; rows are only added, and purged when they are old.
audit = sa.Table(
    "audit",
    metadata,
    sa.Column("number", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
    sa.Column("at", sa.DateTime(timezone=True), nullable=False),
    sa.Column("principal", sa.String(128), nullable=False),
    sa.Column("operation", sa.String(64), nullable=False),
    sa.Column("request_id", sa.String(128)),
    sa.Column("kind", sa.String(16), nullable=False),
    sa.Column("outcome", sa.String(16), nullable=False),
    # Names, not ids, since the table or the rule may be gone.
    sa.Column("table_name", sa.String(256)),
    sa.Column("item", sa.String(256)),
    sa.Column("before", sa.String(64)),
    sa.Column("after", sa.String(64)),
    # As JSON: the fields of a definition with their values before and after.
    sa.Column("fields", sa.Text),
    *(
        sa.Index(f"ix_audit_{column}", column, "number")
        for column in ("at", "principal", "table_name")
    ),
    # Numbers are never reused.
    sqlite_autoincrement=True,
)

# Figures of plans, for operators to look at after the plans have expired; rows are purged when they
# are old.
plan_history = sa.Table(
    "plan_history",
    metadata,
    sa.Column("number", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
    sa.Column("plan_id", sa.String(32), nullable=False, index=True),
    # A name, not an id, since the table may be gone.
    sa.Column("table_name", sa.String(256), nullable=False),
    sa.Column("principal", sa.String(128), nullable=False),
    sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
    sa.Column("is_failed", sa.Boolean, nullable=False, server_default=sa.false()),
    # What reading it took, as JSON and in seconds; null until its driver reports it.
    sa.Column("scan", sa.Text),
    sa.Column("scan_seconds", sa.Float),
    # Everything else, as JSON.
    sa.Column("body", sa.Text, nullable=False),
    *(
        sa.Index(f"ix_plan_history_{column}", column, "number")
        for column in ("created_at", "principal", "table_name")
    ),
    # Counts the plans of tables without looking at them.
    sa.Index("ix_plan_history_reads", "table_name", "created_at"),
    # Numbers are never reused.
    sqlite_autoincrement=True,
)

tokens = sa.Table(
    "tokens",
    metadata,
    sa.Column("token_id", sa.String(32), primary_key=True),
    sa.Column("name", sa.String(128), nullable=False),
    sa.Column("digest", sa.String(64), nullable=False, unique=True),
    # Scopes on everything. Coordinators of earlier versions refuse tokens that have none.
    sa.Column("scopes", sa.String(256), nullable=False),
    sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
    sa.Column("expires_at", sa.DateTime(timezone=True)),
    sa.Column("revoked_at", sa.DateTime(timezone=True)),
    # Scopes on some tables or workers, separated by spaces; null if there are none.
    sa.Column("grants", sa.Text),
)

# Who signed in with a browser, and how: either token_digest or issuer is set.
browser_sessions = sa.Table(
    "browser_sessions",
    metadata,
    sa.Column("digest", sa.String(64), primary_key=True),
    sa.Column("principal", sa.String(128), nullable=False, index=True),
    sa.Column("token_digest", sa.String(64)),
    sa.Column("issuer", sa.Text),
    sa.Column("claims", sa.Text),
    sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
    sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False, index=True),
)
