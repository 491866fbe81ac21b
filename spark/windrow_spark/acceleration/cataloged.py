"""The partitions of a table of Spark's catalog, which change with its rows."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Collection, Mapping
from datetime import date
from typing import Any

from pyspark.sql import SparkSession

from windrow_calls.coordinator import Coordinator
from windrow_calls.errors import WriteInProgressError
from windrow_core.files.listing import HIVE_DEFAULT_PARTITION, escape, unescape
from windrow_core.files.table_paths import path_in
from windrow_core.models import TableInfo
from windrow_spark.acceleration.refused import NotTheSameError
from windrow_spark.catalog.entries import SparkCatalog, pattern_of
from windrow_spark.catalog.mapping import partitions_of
from windrow_spark.writing.schemas import partition_columns_of
from windrow_tables.commits.locations import local_location

# How long a change of the list waits for commits of others, and between two attempts.
_WAIT_S = 60.0
_PAUSE_S = (0.1, 0.5)
_USUAL_TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{0,5}[1-9])?", re.ASCII)
_WHOLE_NUMBERS = {"tinyint", "smallint", "int", "bigint"}


class CatalogPartitions:
    """The partitions of an imported table, in the catalog and in the coordinator's list.

    A partition is known by its name, such as `ds=2026-11-01/country=SE`, which is also its folder.

    Args:
        spark: A classic session.
        client: The client of the table's coordinator.
        table: The table there.
        identifier: The JVM's identifier of the table in the catalog.
    """

    def __init__(
        self, spark: SparkSession, client: Coordinator, table: TableInfo, identifier: Any
    ) -> None:
        self._spark = spark
        self._client = client
        self._table = table
        self._identifier = identifier
        self._catalog = SparkCatalog(spark)
        (self._entry,) = self._catalog.entries([pattern_of(table.name)])
        self._columns = partition_columns_of(table)

    def check(self) -> None:
        """Make sure that a value has one name, and that each partition is in the folder of its name.

        Raises:
            NotTheSameError: Spark might write rows to another partition than Windrow.
        """
        names = self._catalog.partition_names(self._entry)
        location = local_location(self._table)
        partitions = self._client.partitions(self._table.name)
        folders = {path_in(location, one.location) for one in partitions}
        odd = min(folders ^ names, default=None)
        if odd is not None:
            raise NotTheSameError(f"partition {odd!r} is not in the folder of its name")
        for level, column in enumerate(self._columns):
            if column.type == "string":
                continue
            if column.type not in {*_WHOLE_NUMBERS, "date", "timestamp_ntz"}:
                raise NotTheSameError(f"its partition column {column.name!r} is {column.type}")
            for text in {name.split("/")[level].partition("=")[2] for name in names}:
                if text != HIVE_DEFAULT_PARTITION and not _is_usual(text, column.type):
                    raise NotTheSameError(
                        f"a partition has {text!r} for column {column.name!r}, which Spark writes "
                        "differently"
                    )

    def with_values(self, values: Mapping[str, str | None]) -> set[str]:
        """Return the catalog's partitions with the values that a statement names.

        Args:
            values: The texts of some partition columns, by name; None is null.
        """
        texts = {name.lower(): _folder_text(text) for name, text in values.items()}
        return {
            name
            for name in self._catalog.partition_names(self._entry)
            if texts.items() <= _texts_of(name).items()
        }

    def name_of(self, values: Mapping[str, str | None]) -> str | None:
        """Return the name of the one partition that values name; None if columns are left open."""
        texts = {name.lower(): _folder_text(text) for name, text in values.items()}
        if texts.keys() != {column.name.lower() for column in self._columns}:
            return None
        parts = (f"{escape(one.name)}={texts[one.name.lower()]}" for one in self._columns)
        return "/".join(parts)

    def add(self, names: Collection[str]) -> None:
        """Add partitions to the catalog, then to the coordinator's list.

        Raises:
            WriteInProgressError: Others have been committing for a minute.
            ProblemError: The coordinator refuses.
        """
        if not names:
            return
        jvm: Any = self._spark.sparkContext._jvm
        nothing = jvm.scala.Option.apply(None)
        pairs = [jvm.scala.Tuple2(spec, nothing) for spec in self._specs(names)]
        commands = jvm.org.apache.spark.sql.execution.command
        self._run(commands.AlterTableAddPartitionCommand(self._identifier, self._seq(pairs), True))
        self._list()

    def drop(self, names: Collection[str]) -> None:
        """Remove partitions, whose files are gone, from the catalog, then from the list.

        Raises:
            WriteInProgressError: Others have been committing for a minute.
            ProblemError: The coordinator refuses.
        """
        if not names:
            return
        jvm: Any = self._spark.sparkContext._jvm
        specs = self._seq(self._specs(names))
        commands = jvm.org.apache.spark.sql.execution.command
        self._run(
            commands.AlterTableDropPartitionCommand(self._identifier, specs, True, False, True)
        )
        self._list()

    def _list(self) -> None:
        """Give the coordinator the catalog's partitions."""
        began_s = time.monotonic()
        while True:
            rows = partitions_of(self._entry, self._catalog.partitions(self._entry))
            try:
                self._client.set_partitions(self._table.name, rows)
                return
            except WriteInProgressError:
                if time.monotonic() - began_s > _WAIT_S:
                    raise
                time.sleep(random.uniform(*_PAUSE_S))

    def _specs(self, names: Collection[str]) -> list[Any]:
        jvm: Any = self._spark.sparkContext._jvm
        fragments = jvm.org.apache.spark.sql.execution.datasources.PartitioningUtils
        return [fragments.parsePathFragment(name) for name in sorted(names)]

    def _seq(self, values: list[Any]) -> Any:
        jvm: Any = self._spark.sparkContext._jvm
        items = jvm.java.util.ArrayList()
        for value in values:
            items.add(value)
        return jvm.org.apache.spark.api.python.PythonUtils.toSeq(items)

    def _run(self, command: Any) -> None:
        command.run(self._spark._jsparkSession)


def _folder_text(text: str | None) -> str:
    return HIVE_DEFAULT_PARTITION if text is None else escape(text)


def _texts_of(name: str) -> dict[str, str]:
    pairs = (part.partition("=") for part in name.split("/"))
    return {unescape(key).lower(): text for key, _, text in pairs}


def _is_usual(text: str, type_: str) -> bool:
    """Return whether a text is the one that Spark writes for its value."""
    try:
        if type_ == "date":
            return date.fromisoformat(text).isoformat() == text
        if type_ == "timestamp_ntz":
            return _USUAL_TIME.fullmatch(unescape(text)) is not None
        return str(int(text)) == text
    except ValueError:
        return False
