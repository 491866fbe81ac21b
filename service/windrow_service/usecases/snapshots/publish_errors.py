"""Errors raised while inventories are published.

* UseCaseError
  + TableContendedError
  + BloomColumnsChangedError
"""

from __future__ import annotations

from windrow_service.usecases.errors import UseCaseError


class TableContendedError(UseCaseError):
    """Others publish the table all the time, and each was faster."""

    def __init__(self, table: str, attempts: int, retry_after_s: int) -> None:
        super().__init__(table, attempts, retry_after_s)
        self.table = table
        self.attempts = attempts
        self.retry_after_s = retry_after_s

    def __str__(self) -> str:
        return (
            f"table {self.table!r} was published by others {self.attempts} times meanwhile, and "
            f"nothing was changed: try again in {self.retry_after_s} s, with fewer, larger deltas"
        )


class BloomColumnsChangedError(UseCaseError):
    """A delta does not fit, as the table's definition asks for other Bloom filters by now."""

    def __init__(self, table: str) -> None:
        super().__init__(table)
        self.table = table

    def __str__(self) -> str:
        return (
            f"bloom_columns of table {self.table!r} have changed since its current snapshot: "
            "refresh it, or publish a whole inventory, before the next delta"
        )
