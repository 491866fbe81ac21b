"""Protection from deletion that holds for every program, also for versions that do not know it.

A later revision that makes one of these tables anew must make its triggers again.
"""

from __future__ import annotations

from alembic import op

revision = "0021"
down_revision = "0020"

_UNPROTECT = "unprotect it first"
# For each trigger: its table, when it runs, on which rows, and what is refused. Without a reason, the
# row just stays: versions that do not know the protection drop old snapshots of all tables at once.
_TRIGGERS = {
    "protect_table": (
        "tables",
        "DELETE",
        "OLD.deletion_protection",
        "it cannot be deleted",
    ),
    # A new definition that would read the files differently.
    "protect_content": (
        "tables",
        "UPDATE",
        "OLD.deletion_protection AND NEW.definition <> OLD.definition AND ("
        "(OLD.current_snapshot_id IS NOT NULL AND NEW.current_snapshot_id IS NULL)"
        " OR (OLD.partition_count IS NOT NULL AND NEW.partition_count IS NULL))",
        "its snapshots and its list of partitions cannot be dropped",
    ),
    "protect_snapshot": ("snapshots", "DELETE", "{old_table}", None),
    "protect_partitions": (
        "writes",
        "INSERT",
        "NEW.kind = 'removal' AND NEW.state IN ('staging', 'committing') AND {new_table}",
        "its partitions cannot be dropped",
    ),
    "protect_left_partitions": (
        "writes",
        "UPDATE",
        "NEW.kind = 'removal' AND NEW.state = 'committing' AND OLD.state <> 'committing'"
        " AND {new_table}",
        "its partitions cannot be dropped",
    ),
}


def upgrade() -> None:
    """Add triggers that refuse to delete what is protected."""
    add = _add_to_postgresql if op.get_bind().dialect.name == "postgresql" else _add_to_sqlite
    for name, (table, change, condition, reason) in _TRIGGERS.items():
        is_protected = (
            "EXISTS (SELECT 1 FROM tables WHERE tables.table_id = {}.table_id"
            " AND tables.deletion_protection)"
        )
        condition = condition.format(
            old_table=is_protected.format("OLD"), new_table=is_protected.format("NEW")
        )
        text = None
        if reason is not None:
            text = f"the table is protected from deletion, so {reason}: {_UNPROTECT}"
        add(name, table, change, condition, text)


def _add_to_sqlite(name: str, table: str, change: str, condition: str, text: str | None) -> None:
    refusal = "RAISE(IGNORE)" if text is None else f"RAISE(ABORT, '{text}')"
    op.execute(
        f"CREATE TRIGGER {name} BEFORE {change} ON {table} FOR EACH ROW WHEN {condition}"
        f" BEGIN SELECT {refusal}; END"
    )


def _add_to_postgresql(
    name: str, table: str, change: str, condition: str, text: str | None
) -> None:
    # Versions that do not know the error's number answer 503 with its text.
    refusal = "RETURN NULL" if text is None else f"RAISE EXCEPTION '{text}' USING ERRCODE = '55000'"
    row = "OLD" if change == "DELETE" else "NEW"
    # The condition of a trigger itself may not look into other tables.
    op.execute(
        f"CREATE FUNCTION windrow_{name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        f" IF {condition} THEN {refusal}; END IF; RETURN {row}; END $$"
    )
    op.execute(
        f"CREATE TRIGGER {name} BEFORE {change} ON {table} FOR EACH ROW"
        f" EXECUTE FUNCTION windrow_{name}()"
    )
