"""Upgrade the metadata database to the newest revision, safely even if several try at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from windrow_service.store.postgresql import limits_of
from windrow_service.usecases.errors import StartError

# Any number that nothing else in the same database uses for locking.
_ADVISORY_LOCK = 7_946_307_310_225
_FIRST_REVISION = "0001"
_FIRST_TABLES = frozenset(("manifests", "plans", "secrets", "snapshot_manifests", "snapshots"))


@dataclass(frozen=True, slots=True)
class Upgraded:
    """The revisions before and after an upgrade; None means an empty database."""

    before: str | None
    after: str


def newest_revision() -> str:
    """Return the revision that this version of Windrow needs."""
    head = ScriptDirectory.from_config(_config()).get_current_head()
    assert head is not None
    return head


def upgrade(url: sa.URL, revision: str = "head") -> Upgraded:
    """Run the missing migrations: all of them, or none if one fails.

    Callers wait for each other, so that replicas may start together.

    Args:
        url: The database, with a synchronous driver or one that can be used synchronously.
        revision: The last revision to apply.
    """
    limits = {} if url.get_backend_name() == "sqlite" else limits_of(url)
    engine = sa.create_engine(synchronous(url), connect_args=limits)
    try:
        with _locked(engine) as connection:
            before = _known_revision(connection)
            config = _config()
            config.attributes["connection"] = connection
            _check_known(before)
            command.upgrade(config, revision)
            after = _revision(connection)
            assert after is not None
            return Upgraded(before, after)
    finally:
        engine.dispose()


def check(connection: sa.Connection) -> None:
    """Check that a database is at the newest revision."""
    revision, newest = _revision(connection), newest_revision()
    _check_known(revision)
    if revision != newest:
        raise StartError(
            f"the database is at revision {revision or 'none'} and this version needs {newest}: "
            "run `windrow db upgrade`"
        )


def synchronous(url: sa.URL) -> sa.URL:
    """Return the URL of the same database for synchronous use."""
    return url.set(drivername="sqlite") if url.get_backend_name() == "sqlite" else url


@contextmanager
def _locked(engine: sa.Engine) -> Iterator[sa.Connection]:
    if engine.dialect.name == "sqlite":
        # Keep the driver from beginning transactions, which it would also commit by itself.
        sa.event.listen(engine, "connect", _begin_no_transactions)
        sa.event.listen(
            engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN EXCLUSIVE")
        )
    with engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            lock = sa.select(sa.func.pg_advisory_xact_lock(_ADVISORY_LOCK))
            connection.execute(lock)
        yield connection


def _begin_no_transactions(connection: sa.engine.interfaces.DBAPIConnection, _: object) -> None:
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute("PRAGMA busy_timeout = 60000")
    cursor.close()


def _known_revision(connection: sa.Connection) -> str | None:
    """Return the revision; stamp a database from before revisions existed with the first one."""
    revision = _revision(connection)
    tables = set(sa.inspect(connection).get_table_names())
    if revision is not None or "tables" not in tables:
        return revision
    columns = {column["name"] for column in sa.inspect(connection).get_columns("snapshots")}
    if not tables >= _FIRST_TABLES or "ranges" not in columns:
        raise StartError(
            "the database was created by a version of Windrow without migrations: move it "
            "away or choose another one, then register and refresh the tables again"
        )
    config = _config()
    config.attributes["connection"] = connection
    command.stamp(config, _FIRST_REVISION)
    return _FIRST_REVISION


def _check_known(revision: str | None) -> None:
    script = ScriptDirectory.from_config(_config())
    revisions = {one.revision for one in script.walk_revisions()}
    if revision is not None and revision not in revisions:
        raise StartError(
            f"the database is at revision {revision}, which this version of Windrow does not "
            "know: run the version that upgraded it, or a later one"
        )


def _revision(connection: sa.Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    return config
