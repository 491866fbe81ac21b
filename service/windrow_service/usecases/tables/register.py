"""Register a table."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import pyarrow as pa

from windrow_core.files.file_fields import DEFAULT, absent
from windrow_core.files.formats import FORMATS
from windrow_core.files.limits import TooWideError, refuse_wide
from windrow_core.files.type_texts import most_fields
from windrow_core.models import PlanOptions, TableDefinition
from windrow_service.inventory.listing.locations import overlaps
from windrow_service.inventory.spark_types import arrow_type
from windrow_service.usecases.names import Names
from windrow_service.usecases.ports import Once, Runner
from windrow_service.usecases.tables.errors import (
    InvalidTableError,
    LocationSharedError,
    TableNotFoundError,
)
from windrow_service.usecases.tables.ports import Locations, StoredTable, TableStore

# A type that is char(n), or has it within.
_PADDED = re.compile(r"(?<![\w`])char(acter)?\s*\(", re.IGNORECASE)
# Room for 10,000 columns with names and types of 400 characters. Lists of tables hold definitions.
MAX_DEFINITION_BYTES = 4 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterTable:
    """Register a table of at most `max_fields` under its canonical location, or change it."""

    tables: TableStore
    locations: Locations
    runner: Runner
    max_fields: int

    async def __call__(
        self,
        name: str,
        definition: TableDefinition,
        if_match: str | None,
        readable: Names,
        once: Once | None = None,
        *,
        replace: bool = False,
    ) -> tuple[StoredTable, bool]:
        """Return the table, and whether it is new.

        Args:
            name: The table.
            definition: The table's definition.
            if_match: The version that the table must be at.
            readable: The tables that the caller may read.
            once: The caller's key.
            replace: Whether the table may move, and lose snapshots and a list of partitions.

        Raises:
            InvalidTableError: The definition contradicts itself.
            LocationNotAllowedError: The location lies outside the allowed prefixes.
            LocationSharedError: The location may have files of tables that the caller may not
                read.
            TableChangedError: The table is not at version `if_match`.
            UnconfirmedReplacementError: The change would move the table, or drop snapshots or a
                list of partitions, and neither `replace` nor a version in `if_match` agrees to it.
        """
        location = await self.runner.run(lambda: self._checked(definition))
        definition = definition.model_copy(update={"location": location})
        if not readable.every:
            await self._refuse_shared(name, definition, readable)
        return await self.tables.put(name, definition, if_match, once, replace=replace)

    def _checked(self, definition: TableDefinition) -> str:
        columns = [*(definition.columns or []), *(definition.partition_columns or [])]
        try:
            refuse_wide(sum(most_fields(column.type) for column in columns), self.max_fields)
        except TooWideError as error:
            raise InvalidTableError(f"the definition has {error}") from error
        check_definition(definition)
        return self.locations.locate(definition)

    async def _refuse_shared(self, name: str, definition: TableDefinition, readable: Names) -> None:
        with suppress(TableNotFoundError):
            before = (await self.tables.get(name)).info.definition
            if (before.location, before.format_options) == (
                definition.location,
                definition.format_options,
            ):
                return
        options = definition.format_options
        if "catalog" in options:
            # The catalog says where the table is, and knows everybody's tables.
            raise LocationSharedError(definition.location)
        locations = [definition.location]
        if "metadata" in options:
            metadata = options["metadata"]
            locations += await self.runner.run(lambda: self.locations.allowed([metadata]))
        await refuse_shared(locations, self.tables, self.runner, readable)


async def refuse_shared(
    locations: Sequence[str], tables: TableStore, runner: Runner, readable: Names
) -> None:
    """Refuse places that overlap the locations of tables that a caller may not read."""
    others = await tables.locations(readable)
    overlap = await runner.run(lambda: next(overlaps(locations, others), None))
    if overlap is not None:
        raise LocationSharedError(overlap)


def check_definition(definition: TableDefinition) -> None:
    """Refuse a definition that contradicts itself."""
    size_bytes = len(definition.model_dump_json())
    if size_bytes > MAX_DEFINITION_BYTES:
        raise InvalidTableError(
            f"the definition takes {size_bytes:,} bytes, of which it may have "
            f"{MAX_DEFINITION_BYTES:,}: shorten the names, types or defaults of its columns"
        )
    try:
        PlanOptions.completed(definition.plan_options.model_dump(exclude_none=True))
    except ValueError as error:
        raise InvalidTableError(f"plan_options: {error}") from None
    for name, reason in definition.kind.unfit_fields.items():
        if getattr(definition, name):
            raise InvalidTableError(reason)
    if definition.listed_partitions and not definition.partition_columns:
        raise InvalidTableError(
            "listed_partitions needs partition_columns, whose values the list gives: name them"
        )
    _check_serde(definition)
    for column in [*(definition.columns or []), *(definition.partition_columns or [])]:
        arrow_type(column.type)
        if _PADDED.search(column.type):
            raise InvalidTableError(
                f"column {column.name!r} is {column.type}, whose values Spark pads as it reads "
                "them, and Windrow does not: declare it as string to read them as they are stored"
            )
    _check_defaults(definition)
    data = [column.name for column in definition.columns or []]
    partition = [column.name for column in definition.partition_columns or []]
    sort = [column.name for column in definition.sort_columns]
    bucket = definition.bucket_spec.columns if definition.bucket_spec else []
    for what, names in (
        ("column", data + partition),
        ("sort column", sort),
        ("bucket column", bucket),
    ):
        for name, count in Counter(name.lower() for name in names).items():
            if count > 1:
                raise InvalidTableError(f"{what} {name!r} appears {count} times: name it once")
    if definition.columns is not None and definition.partition_columns is not None:
        for what, names in (("sort column", sort), ("bucket column", bucket)):
            for name in names:
                if name not in data + partition:
                    raise InvalidTableError(
                        f"{what} {name!r} is not among the columns: {', '.join(data + partition)}"
                    )


def _check_defaults(definition: TableDefinition) -> None:
    """Refuse defaults that are not values of their columns, or that Spark does not give rows."""
    for column in definition.partition_columns or []:
        if column.default is not None:
            raise InvalidTableError(
                f"partition column {column.name!r} has a default, but its values come from "
                "folders: leave the default out"
            )
    for column in definition.columns or []:
        if column.default is None:
            continue
        if not definition.kind.has_defaults:
            formats = ", ".join(name for name, files in FORMATS.items() if files.has_defaults)
            raise InvalidTableError(
                f"column {column.name!r} has a default, which only tables of "
                f"{formats} can have that are not transactional: leave it out"
            )
        try:
            absent(pa.field("", arrow_type(column.type), metadata={DEFAULT: column.default}), 1)
        except (pa.ArrowException, ArithmeticError, RecursionError, TypeError, ValueError) as error:
            raise InvalidTableError(
                f"the default of column {column.name!r} is not a value of type {column.type}, as "
                "JSON: correct it"
            ) from error


def _check_serde(definition: TableDefinition) -> None:
    """Refuse columns whose values a SerDe of Hive would change, or give in another type."""
    serde = definition.format_options.get("serde")
    if serde is None:
        return
    folders = {column.name.lower() for column in definition.partition_columns or []}
    for column in definition.columns or []:
        type_ = column.type.strip().lower()
        if column.name.lower() in folders:
            continue
        if "char" in type_:
            raise InvalidTableError(
                f"column {column.name!r} is {column.type}, which Hive cuts or pads and Spark does "
                "not: declare it as string"
            )
        if serde.endswith("OpenCSVSerde") and type_ != "string":
            raise InvalidTableError(
                f"column {column.name!r} is {column.type}, and OpenCSVSerde gives only strings: "
                "declare it as string, and cast in queries"
            )
