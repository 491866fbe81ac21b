"""Errors of writes.

* UseCaseError
  + NotFoundError
    - WriteNotFoundError
  + WriteStateError
  + WriteTakenError
"""

from __future__ import annotations

from windrow_service.usecases.errors import NotFoundError, UseCaseError


class WriteNotFoundError(NotFoundError):
    """The table has no such write."""

    def __init__(self, table: str, write_id: str) -> None:
        super().__init__(table, write_id)
        self.table = table
        self.write_id = write_id

    def __str__(self) -> str:
        return (
            f"table {self.table!r} has no write {self.write_id}: GET /tables/{self.table}/writes "
            "lists those it has, and a write begins in state staging"
        )


class WriteStateError(UseCaseError):
    """A write cannot get from its state to the one asked for."""

    def __init__(self, table: str, write_id: str, state: str, wanted: str) -> None:
        super().__init__(table, write_id, state, wanted)
        self.table = table
        self.write_id = write_id
        self.state = state
        self.wanted = wanted

    def __str__(self) -> str:
        return (
            f"write {self.write_id} to table {self.table!r} is {self.state}, so it cannot be "
            f"{self.wanted}: a write goes from staging to committing to published, or is undone; "
            "begin another"
        )


class WriteTakenError(UseCaseError):
    """A write belongs to another process."""

    def __init__(self, table: str, write_id: str, host: str, process: int) -> None:
        super().__init__(table, write_id, host, process)
        self.table = table
        self.write_id = write_id
        self.host = host
        self.process = process

    def __str__(self) -> str:
        return (
            f"write {self.write_id} to table {self.table!r} is in the hands of process "
            f"{self.process} on host {self.host!r}: leave it to that, or wait until its lease has "
            "run out to take it over"
        )
