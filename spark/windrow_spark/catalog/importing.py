"""Register the tables of Spark's catalog, and follow its changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal, TypeAlias

import pyarrow as pa
from pyspark.sql import SparkSession

from windrow_calls.arguments import checked
from windrow_calls.coordinator import Coordinator
from windrow_calls.errors import (
    CoordinatorUnreachableError,
    InvalidArgumentError,
    ProblemError,
    WindrowError,
)
from windrow_core.cards import Shown, ShownList, count_text
from windrow_core.models import PartitionListChange, TableDefinition, TableInfo
from windrow_spark.catalog.entries import (
    CatalogEntry,
    CatalogError,
    SparkCatalog,
    matching,
    pattern_of,
)
from windrow_spark.catalog.mapping import (
    UnreadableTableError,
    definition_of,
    partitions_of,
    reads_columns_of_partitions,
    refuse_other_columns,
)

Outcome: TypeAlias = Literal["created", "updated", "unchanged", "skipped", "failed", "vanished"]
# Makes the inventory of the named table in the caller's own way.
Refresh: TypeAlias = Callable[[str], object]

_ORIGIN = "hive:"
# The coordinator limits its concurrent work; more callers would only wait.
_AT_ONCE = 4
# Fields that an import leaves as users have set them.
_OF_USERS = ("plan_options", "bloom_columns", "trust_folder_times")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ImportedTable(Shown):
    """The outcome of an import for one table.

    Attributes:
        name: Its name, in the catalog and at the coordinator.
        outcome: `created`, `updated` or `unchanged`; `skipped` if it cannot be read, or was not
            registered by an import; `failed` if the catalog did not list its partitions, its files
            cannot be read, or the coordinator refused; `vanished` if the catalog no longer has it.
        changes: What has changed, if the table was updated.
        reason: Why it was skipped, failed or vanished.
        notes: What the import leaves out, as sentences.
    """

    name: str
    outcome: Outcome
    changes: tuple[str, ...] = ()
    reason: str = ""
    notes: tuple[str, ...] = ()


def import_tables(
    spark: SparkSession,
    coordinator: Coordinator,
    patterns: Sequence[str],
    *,
    refresh: Literal["changed", "all", "none"] = "changed",
    refresh_with: Refresh | None = None,
    trust_partitions: bool = False,
    take_over: bool = False,
    delete_vanished: bool = False,
    on_table: Callable[[ImportedTable], None] = lambda _: None,
) -> list[ImportedTable]:
    """Register tables of a session's catalog; see `windrow.Client.import_tables`.

    Raises:
        InvalidArgumentError: A pattern is not of the form `database.table`.
        SparkConnectError: The session is one of Spark Connect.
        CoordinatorUnreachableError: The coordinator does not answer.
    """
    if not patterns:
        raise InvalidArgumentError("tables", "say which tables: 'sales.events' or 'sales.*'")
    name_patterns = [pattern_of(text) for text in patterns]
    tables = {info.name: info for info in coordinator.tables()}
    catalog = SparkCatalog(spark)
    work = _Import(coordinator, catalog, tables, refresh, refresh_with, trust_partitions, take_over)
    done: list[ImportedTable] = []
    names: set[str] = set()
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="windrow-import") as threads:
        running: list[Future[ImportedTable]] = []
        for entry in catalog.entries(name_patterns):
            names.add(entry.full_name)
            running.append(threads.submit(work.import_one, entry))
        for future in running:
            done.append(future.result())
            on_table(done[-1])
    for one in _vanished(coordinator, tables, name_patterns, names, delete_vanished):
        done.append(one)
        on_table(one)
    return ShownList(sorted(done, key=lambda one: one.name), "tables")


@dataclass(frozen=True, slots=True)
class _Import:
    coordinator: Coordinator
    catalog: SparkCatalog
    tables: Mapping[str, TableInfo]
    refresh: Literal["changed", "all", "none"]
    refresh_with: Refresh | None
    trust_partitions: bool
    take_over: bool

    def import_one(self, entry: CatalogEntry) -> ImportedTable:
        name = entry.full_name
        before = self.tables.get(name)
        of_users = (
            {} if before is None else {one: getattr(before.definition, one) for one in _OF_USERS}
        )
        try:
            mapping = definition_of(entry, self.catalog.value_of)
            fields = {**mapping.fields, **of_users, "imported_from": _ORIGIN + name}
            definition = checked(TableDefinition, fields)
            partitions = None
            if definition.listed_partitions and not self._is_trusted(entry, definition, before):
                partitions = partitions_of(entry, self.catalog.partitions(entry))
                if reads_columns_of_partitions(entry):
                    odd = self.catalog.partition_with_other_columns(entry)
                    if odd is not None:
                        refuse_other_columns(entry, odd)
        except (UnreadableTableError, InvalidArgumentError) as error:
            return ImportedTable(name=name, outcome="skipped", reason=str(error))
        except CatalogError as error:
            return ImportedTable(name=name, outcome="failed", reason=str(error))
        if (
            before is not None
            and before.definition.imported_from != definition.imported_from
            and not self.take_over
        ):
            reason = (
                "a table of this name was not registered by an import: delete it, or import with "
                "take_over (--take-over)"
            )
            return ImportedTable(name=name, outcome="skipped", reason=reason)
        try:
            changes = self._register(name, definition, partitions, before)
            outcome: Outcome = (
                "created" if before is None else "updated" if changes else "unchanged"
            )
            if self.refresh == "all" or (
                self.refresh == "changed" and self._is_due(before, changes)
            ):
                changes = (*changes, *self._refresh(name))
                if outcome == "unchanged" and changes:
                    outcome = "updated"
        except CoordinatorUnreachableError:
            raise
        except WindrowError as error:
            return ImportedTable(
                name=name, outcome="failed", reason=str(error), notes=mapping.notes
            )
        changes = () if outcome == "created" else changes
        return ImportedTable(name=name, outcome=outcome, changes=changes, notes=mapping.notes)

    def _is_trusted(
        self, entry: CatalogEntry, definition: TableDefinition, before: TableInfo | None
    ) -> bool:
        """Return whether a table still has the same partitions, judged by their values alone."""
        if not self.trust_partitions or before is None or before.partition_count is None:
            return False
        if definition != before.definition:
            return False
        values = {tuple(one.values) for one in self.coordinator.partitions(entry.full_name)}
        return values == self.catalog.partition_values(entry)

    def _is_due(self, before: TableInfo | None, changes: Sequence[str]) -> bool:
        # A table whose first refresh failed has no snapshot yet, and is tried again.
        return before is None or before.current_snapshot is None or bool(changes)

    def _register(
        self,
        name: str,
        definition: TableDefinition,
        partitions: pa.Table | None,
        before: TableInfo | None,
    ) -> tuple[str, ...]:
        """Register a table and its partitions; return what has changed."""
        changes: list[str] = []
        if before is None or definition != before.definition:
            # The catalog decides what an imported table is. A table registered by another caller
            # since the import began is not replaced.
            replace = before is not None
            after = self.coordinator.put_table(name, definition, replace=replace).definition
            if before is not None:
                changes = [
                    field
                    for field in TableDefinition.model_fields
                    if getattr(after, field) != getattr(before.definition, field)
                ]
        if partitions is not None:
            changes += _change_texts(self.coordinator.set_partitions(name, partitions))
        elif not definition.listed_partitions and before and before.partition_count is not None:
            changes += _change_texts(self.coordinator.remove_partitions(name))
        return tuple(changes)

    def _refresh(self, name: str) -> tuple[str, ...]:
        if self.refresh_with is not None:
            self.refresh_with(name)
            return ()
        status = self.coordinator.refresh(name)
        if not status.changed:
            return ()
        return (
            f"{count_text(status.files_added, 'file')} added",
            f"{count_text(status.files_removed, 'file')} removed",
        )


def _change_texts(change: PartitionListChange) -> list[str]:
    counts = {"added": change.added, "removed": change.removed, "moved": change.moved}
    return [f"{count_text(count, 'partition')} {what}" for what, count in counts.items() if count]


def _vanished(
    coordinator: Coordinator,
    tables: Mapping[str, TableInfo],
    patterns: Sequence[tuple[str, str]],
    names: set[str],
    delete: bool,
) -> Iterator[ImportedTable]:
    """Yield the imported tables that the catalog no longer has."""
    for name, info in tables.items():
        if name in names or info.definition.imported_from != _ORIGIN + name:
            continue
        if not matching(patterns, *name.split(".", 1)):
            continue
        reason = "the catalog no longer has it; it stays registered"
        if delete:
            try:
                coordinator.delete_table(name)
                reason = "the catalog no longer has it; its registration is deleted"
            except ProblemError as error:
                yield ImportedTable(name=name, outcome="failed", reason=str(error))
                continue
        yield ImportedTable(name=name, outcome="vanished", reason=reason)
