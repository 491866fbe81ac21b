"""Revisions of the metadata database, run by Alembic: see `windrow_service.store.migrate`."""
