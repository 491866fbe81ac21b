"""Tables: register them, look at them, delete their registrations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from windrow_calls.arguments import checked
from windrow_calls.errors import InvalidArgumentError
from windrow_calls.listing import Listing
from windrow_calls.transport import ARROW_STREAM, Calls, read_answer, table_path
from windrow_core.files.streams import stream_of
from windrow_core.models import (
    PartitionListChange,
    PartitionPage,
    PlanDefaults,
    TableDefinition,
    TableInfo,
    TablePage,
    TablePartition,
    TableProtection,
)

_PARTITIONS_PER_PAGE = 10_000


class TableCalls(Calls):
    """Calls about tables."""

    # The latest list of tables.
    _tables: Listing[TableInfo] | None = None

    def register_table(
        self,
        name: str,
        location: str,
        format: str = "parquet",
        *,
        format_options: Mapping[str, str | bool | int] | None = None,
        transactional: str | None = None,
        columns: Mapping[str, str] | None = None,
        partition_columns: Mapping[str, str] | None = None,
        bucket_spec: Mapping[str, Any] | None = None,
        sort_columns: Sequence[str | Mapping[str, Any]] = (),
        bloom_columns: Sequence[str] = (),
        plan_options: Mapping[str, Any] | None = None,
        trust_folder_times: bool = False,
        replace: bool = False,
    ) -> TableInfo:
        """Register a table, or change its definition.

        Args:
            name: For example `sales.events`.
            location: Folder of the table, as the coordinator sees it.
            format: `parquet`, `orc`, `avro`, `csv`, `json` (one document per line) or `text`; see
                `docs/reference/formats.md`.
            format_options: Options with which Spark reads the files, by Spark's names, such as
                `{"header": True, "sep": ";"}`.
            transactional: `full` or `insert_only` for Hive's transactional tables.
            columns: Names and Spark SQL types; taken from the files by default. Required for `csv`
                and `json`: `client.infer_columns` finds them.
            partition_columns: Names and types, in the order of the folders; inferred by default.
            bucket_spec: `{"columns": [...], "count": n}` for a bucketed table.
            sort_columns: Columns that every file is sorted by: names, or
                `{"name": …, "descending": …, "nulls_first": …}`.
            bloom_columns: Columns for which each refresh builds Bloom filters, so that `=` and
                `IN` find the few files that hold a value.
            plan_options: Options for plans of this table that neither a request nor a Spark session
                sets: see `windrow_core.models.PlanOptions`.
            trust_folder_times: Whether refreshes skip folders whose time has not changed: quicker
                with millions of files, but a file that is rewritten in place is found only by plans
                with `max_staleness` and by refreshes with `full`.
            replace: If there is a table of this name, let it move to another location, and drop
                its snapshots and its list of partitions if they do not fit the new definition.

        Raises:
            UnconfirmedReplacementError: `replace` is needed, and is not set.

        Example:
            client.register_table("sales.events", "/data/events")
            rates = {"day": "date", "rate": "double"}
            client.register_table("sales.rates", "/data/rates", "csv", columns=rates)
        """
        definition = checked(
            TableDefinition,
            {
                "location": location,
                "format": format,
                "format_options": option_texts(format_options),
                "transactional": transactional,
                "columns": _wire_columns("columns", columns),
                "partition_columns": _wire_columns("partition_columns", partition_columns),
                "bucket_spec": bucket_spec,
                "sort_columns": [
                    {"name": column} if isinstance(column, str) else column
                    for column in sort_columns
                ],
                "bloom_columns": bloom_columns,
                "plan_options": checked(PlanDefaults, plan_options or {}),
                "trust_folder_times": trust_folder_times,
            },
        )
        return self.put_table(name, definition, replace=replace)

    def alter_table(self, name: str, *, plan_options: Mapping[str, Any]) -> TableInfo:
        """Change the plan options in a table's definition; its snapshot stays.

        Args:
            name: Name of the table.
            plan_options: New values by name; None removes one. Other options stay as they are.

        Raises:
            TableChangedError: Someone else has changed the table at the same time.

        Example:
            client.alter_table("sales.events", plan_options={"max_split_size": "128MB"})
        """
        answer = self._transport.call("GET", table_path(name))
        before = read_answer(TableInfo, answer).definition
        options = checked(PlanDefaults, before.plan_options.model_dump() | dict(plan_options))
        definition = before.model_copy(update={"plan_options": options})
        return self.put_table(name, definition, {"If-Match": answer.headers["ETag"]})

    def put_table(
        self,
        name: str,
        definition: TableDefinition,
        headers: Mapping[str, str] | None = None,
        *,
        replace: bool = False,
    ) -> TableInfo:
        """Register a table by its definition; see `register_table`."""
        answer = self._transport.call(
            "PUT",
            table_path(name),
            body=definition.model_dump_json(),
            params={"replace": "true"} if replace else None,
            headers=headers,
        )
        return read_answer(TableInfo, answer)

    def table(self, name: str) -> TableInfo:
        """Return one table with its current snapshot.

        Example:
            client.table("sales.events").current_snapshot.file_count
        """
        return read_answer(TableInfo, self._transport.call("GET", table_path(name)))

    def table_version(self, name: str) -> str:
        """Return a table's ETag for `if_match`; it changes with the definition and the snapshot."""
        return self._transport.call("GET", table_path(name)).headers["ETag"]

    def tables(self) -> Listing[TableInfo]:
        """Return the registered tables by name.

        Example:
            [table.name for table in client.tables()]
        """
        self._tables = self._transport.listing(TablePage, "tables", "/tables")
        return self._tables

    @property
    def table_count(self) -> int | None:
        """The number of tables when they were last listed; None if they never were."""
        return None if self._tables is None else self._tables.known_count

    def set_partitions(
        self, name: str, partitions: pa.Table, *, if_match: str | None = None
    ) -> PartitionListChange:
        """Set a table's list of partitions, with their folders; refreshes then follow the list.

        Args:
            name: Name of the table; its definition must name its partition columns.
            partitions: For each partition its `values`, a list of texts as in Hive's metastore, and
                its `location`.
            if_match: The table's ETag; if the table has changed since then, the list is refused.
        """
        headers = {"Content-Type": ARROW_STREAM}
        if if_match is not None:
            headers["If-Match"] = if_match
        answer = self._transport.call(
            "PUT", f"{table_path(name)}/partitions", body=stream_of(partitions), headers=headers
        )
        return read_answer(PartitionListChange, answer)

    def partitions(self, name: str) -> Listing[TablePartition]:
        """Return the partitions in the list that a catalog gave, by folder.

        Example:
            client.partitions("sales.imports")
        """
        path, size = f"{table_path(name)}/partitions", {"page_size": _PARTITIONS_PER_PAGE}
        return self._transport.listing(PartitionPage, "partitions", path, size)

    def remove_partitions(self, name: str) -> PartitionListChange:
        """Delete a table's list of partitions; its folders are then its partitions again."""
        answer = self._transport.call("DELETE", f"{table_path(name)}/partitions")
        return read_answer(PartitionListChange, answer)

    def protect_table(self, name: str) -> TableInfo:
        """Protect a table from deletion.

        Until `unprotect_table`, it cannot be deleted, its partitions cannot be dropped, neither by
        `drop_partitions` nor by a policy, and its snapshots stay. Writes go on as before.

        Example:
            client.protect_table("sales.events")
        """
        return self._protect(name, True)

    def unprotect_table(self, name: str) -> TableInfo:
        """End the protection of a table from deletion.

        Example:
            client.unprotect_table("sales.events")
        """
        return self._protect(name, False)

    def _protect(self, name: str, deletion_protection: bool) -> TableInfo:
        body = TableProtection(deletion_protection=deletion_protection).model_dump_json()
        path = f"{table_path(name)}/protection"
        return read_answer(TableInfo, self._transport.call("PUT", path, body=body))

    def delete_table(self, name: str) -> None:
        """Delete the registration of a table; its files stay.

        Raises:
            TableProtectedError: The table is protected.

        Example:
            client.delete_table("sales.old_events")
        """
        self._transport.call("DELETE", table_path(name))


def option_texts(options: Any) -> Any:
    """Return options as texts, the only form that Spark takes."""
    if options is None:
        return {}
    if not isinstance(options, Mapping):
        # The model refuses this with an error that names the parameter.
        return options
    return {
        name: str(value).lower() if isinstance(value, bool | int) else value
        for name, value in options.items()
    }


def _wire_columns(parameter: str, columns: Any) -> Any:
    if isinstance(columns, list | tuple) and all(isinstance(one, str) for one in columns):
        pairs = [one.partition(":") for one in columns]
        types = {name: type_ or "…" for name, _, type_ in pairs}
        raise InvalidArgumentError(
            parameter, f"{parameter} are names with their types: write {parameter}={types}"
        )
    if not isinstance(columns, Mapping):
        # None, or a value that the model refuses with an error that names the parameter.
        return columns
    return [{"name": name, "type": type_} for name, type_ in columns.items()]
