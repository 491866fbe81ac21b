"""What the footers of a table's files say, with as few of them read as possible."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from windrow_core.files.assemble import Evolved, footer_columns
from windrow_core.files.chunks import FooterGroup
from windrow_core.files.errors import LocationError, UnreadableFootersError
from windrow_core.files.limits import TooWideError, refuse_wide
from windrow_core.files.schema import FileSchema, data_schema_of, declared_data, field_count
from windrow_service.inventory.footers.reading import read_with, refuse_other_format
from windrow_service.inventory.footers.unread import unread, unread_schema
from windrow_service.inventory.look import Look, PreviousInventory
from windrow_service.inventory.progress import ProgressMeter
from windrow_service.orc.positions import by_position, positioned, require_readable

_NO_COLUMNS = pa.schema([])


@dataclass(frozen=True, slots=True, kw_only=True)
class FooterContents:
    """Collects the content of the listed files' footers, reading as few as possible."""

    look: Look
    files: pa.Table
    partition_schema: pa.Schema
    meter: ProgressMeter
    executor: Executor | None

    def read(
        self, kept_rows: pa.Array, previous: PreviousInventory | None
    ) -> tuple[pa.Schema, pa.Table, int]:
        """Return the data columns, the footer columns and the number of footers that were read.

        Args:
            kept_rows: For each file its row in `previous`; null if it has to be read.
            previous: The inventory to carry over from.
        """
        look, file_format = self.look, self.look.file_format
        declared = look.columns
        if declared is not None:
            declared = declared_data(declared, self.partition_schema.names)
        is_read = not file_format.has_lines
        if not is_read:
            declared = unread_schema(file_format, look.format_options, declared)
        if previous is not None and declared is not None and declared != previous.data_schema:
            kept_rows = pa.nulls(len(kept_rows), kept_rows.type)
        fresh = pc.indices_nonzero(pc.is_null(kept_rows))
        if not is_read and (previous is None or not len(previous.files)):
            refuse_other_format(look.location, self.files, file_format.name)
        if declared is not None and not is_read:
            groups = unread(declared, len(fresh))
        else:
            groups = self._read_footers(fresh)
        groups = [group.at_rows(fresh) for group in groups]
        has_positions = file_format.has_positions
        by_force = has_positions and by_position(look.format_options)
        if has_positions:
            groups = positioned(groups, declared, by_force=by_force)
        look.folders.check(groups)
        sources = [group.files for group in groups]
        # Once all files of an old schema are gone, it no longer restricts anything.
        if previous is not None and (len(fresh) < len(kept_rows) or len(kept_rows) == 0):
            sources.insert(0, FileSchema(previous.data_schema, ""))
        data_schema = data_schema_of(declared, sources, self.partition_schema.names)
        try:
            # Each file has few enough, but others may have other ones.
            refuse_wide(field_count(data_schema), look.limits.fields)
        except TooWideError as error:
            raise LocationError(look.location, f"has {error}") from error
        if has_positions:
            require_readable(groups, data_schema, by_force=by_force)
        old_rows = None
        if previous is not None and len(fresh) < len(kept_rows):
            old_rows = previous.files.take(pc.drop_null(kept_rows)).append_column(
                "row", pc.cast(pc.indices_nonzero(pc.is_valid(kept_rows)), pa.int64())
            )
        footers = footer_columns(
            groups,
            old_rows,
            previous.data_schema if previous is not None else _NO_COLUMNS,
            data_schema,
            file_count=len(kept_rows),
            kept_has_all=previous is not None and previous.has_all_columns,
            evolved=self._evolved(),
            check=self.meter.check_cancelled,
        )
        return data_schema, footers, len(fresh) if is_read else 0

    def _evolved(self) -> Evolved:
        """Return which reader reads files whose columns have other types than the table's."""
        # Arrow's ORC reader returns columns in the types of the file, ours for named rows does not.
        own = None if self.look.folders.names_rows else self.look.file_format.only_read_by
        return own or "grouped_columns"

    def _read_footers(self, fresh: pa.Array) -> list[FooterGroup]:
        look = self.look
        try:
            return read_with(
                look.location,
                self.files.take(fresh),
                self.meter,
                self.executor,
                look.limits,
                look.file_format.name,
                names_rows=look.folders.names_rows,
            )
        except UnreadableFootersError as error:
            # Files that were read before have the table's format.
            if len(fresh) == len(self.files):
                refuse_other_format(look.location, self.files, look.file_format.name, error)
            raise
