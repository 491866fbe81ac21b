"""Figures of snapshots, and an index for counting plans of tables, for lists of all tables.

A later revision that makes `snapshots` anew must make its trigger again.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"

_FIGURES = ("file_count", "size_bytes", "fewest_files")
_COLUMNS = f"table_id, snapshot_id, created_at, {', '.join(_FIGURES)}"


def upgrade() -> None:
    """Add the figures of current snapshots, and a trigger that adds those of all later ones."""
    op.create_table(
        "snapshot_figures",
        sa.Column("table_id", sa.Integer, nullable=False),
        sa.Column("snapshot_id", sa.Integer, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        *(sa.Column(name, sa.BigInteger) for name in _FIGURES),
        sa.PrimaryKeyConstraint("table_id", "snapshot_id", name="pk_snapshot_figures"),
        sa.ForeignKeyConstraint(
            ["table_id", "snapshot_id"],
            ["snapshots.table_id", "snapshots.snapshot_id"],
            name="fk_snapshot_figures_table_id",
            ondelete="CASCADE",
        ),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_plan_history_reads", "plan_history", ["table_name", "created_at"])
    is_on_server = op.get_bind().dialect.name == "postgresql"
    add = f"INSERT INTO snapshot_figures ({_COLUMNS})"
    row = "{0}.table_id, {0}.snapshot_id, {0}.created_at, "
    numbers = _numbers_on_server if is_on_server else _numbers_in_sqlite
    op.execute(
        f"{add} SELECT {row.format('snapshots')} {numbers('snapshots.info')} FROM snapshots "
        "JOIN tables ON tables.table_id = snapshots.table_id "
        "AND tables.current_snapshot_id = snapshots.snapshot_id"
    )
    # Versions before this one write snapshots too while replicas are exchanged.
    note = f"{add} VALUES ({row.format('NEW')} {numbers('NEW.info')});"
    trigger = "CREATE TRIGGER note_figures AFTER INSERT ON snapshots FOR EACH ROW"
    if is_on_server:
        op.execute(
            "CREATE FUNCTION windrow_note_figures() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$ BEGIN {note} RETURN NULL; END $$"
        )
        op.execute(f"{trigger} EXECUTE FUNCTION windrow_note_figures()")
    else:
        op.execute(f"{trigger} BEGIN {note} END")


def _numbers_in_sqlite(info: str) -> str:
    return ", ".join(f"json_extract({info}, '$.{name}')" for name in _FIGURES)


def _numbers_on_server(info: str) -> str:
    # It reads no field of a document that has a null character, such as in the name of a column.
    document = f"replace({info}, '\\u0000', '\\ufffd')::json"
    return ", ".join(f"({document}->>'{name}')::bigint" for name in _FIGURES)
