"""What a kind of table is: the answers to all questions that depend on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from windrow_core.files.formats import FileFormat

REFRESH_IT = "a refresh finds its files (POST /tables/…/refresh)"
_READ_HERE = "read it with Windrow's client, or rewrite it as Parquet files and register these"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How the files of plans are read, of whichever kind their table is.

    Attributes:
        files: Their format.
        nameless: What refusals to name files call the tables whose files other readers give other
            names; None if the table is what its folders hold, as Spark's own tables of files are.
        is_logged: Whether a log lists the files, with their deleted rows and the fields of their
            columns: then no file changes once it is written.
        names_rows: Whether files say which rows of other files are deleted, by names of the rows.
            Then only tasks that read groups tell which rows are left.
    """

    files: FileFormat
    nameless: str | None = None
    is_logged: bool = False
    names_rows: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether the table is what its folders hold, as Spark's own tables of files are."""
        return self.nameless is None


def files_unfit_for_engines(files: FileFormat) -> str | None:
    """Return why other engines cannot read tables of such files; None if they may."""
    if files.is_written:
        return None
    return f"it is of format {files.name!r}, which engines do not read as Iceberg's: {_READ_HERE}"


def rows_unfit_for_engines() -> str:
    """Return why other engines cannot read tables whose files name deleted rows."""
    return f"its rows are deleted one by one, by names that engines do not know: {_READ_HERE}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableKind:
    """A kind of table. Its texts are sentences, or parts of them, that say why something is refused.

    Attributes:
        noun: What refusals call tables of the kind; the format of definitions, where that is the kind.
        reading: How the files of its plans are read.
        unfit_fields: Fields of definitions that it does not have, with the reasons.
        has_defaults: Whether columns may have defaults.
        states_columns: Whether the kind itself says which columns there are, and how files hold
            them; then layouts of files come from their footers, not from inventories.
        has_versions: Whether it has versions of its own, which refreshes can ask for.
        takes_write_ids: Whether refreshes may say which writes are valid.
        has_iceberg_metadata: Whether engines read its own metadata of Iceberg.
        passing_options: Format options that may change while older snapshots stay true.
        metadata_property: Property of a metastore's entry with what is the option `metadata`.
        publishing: What to do instead of publishing files of it; None if files can be published.
        compactor: The program that compacts it; None if Windrow does.
        compacting: What to do instead of compacting it here; None if Windrow does.
        advising: What to do instead of asking for advice; None if there is some.
        packing: Why it has no packs; None if it may.
        writing: Why Windrow does not write to it; None if it may.
        dropping: Why no partitions of it are dropped; None if they may.
        erasing: Why no rows of it are erased; None if they may.
        listing_on_spark: Why Spark does not list its files for a refresh; None if it may.
        unfit_for_engines: Returns why other engines cannot read a table with some format options;
            None if they may.
    """

    noun: str
    reading: Reading
    unfit_for_engines: Callable[[Mapping[str, str]], str | None]
    unfit_fields: Mapping[str, str] = field(default_factory=dict)
    has_defaults: bool = False
    states_columns: bool = False
    has_versions: bool = False
    takes_write_ids: bool = False
    has_iceberg_metadata: bool = False
    passing_options: frozenset[str] = frozenset()
    metadata_property: str | None = None
    publishing: str | None = None
    compactor: str | None = None
    compacting: str | None = None
    advising: str | None = None
    packing: str | None = None
    writing: str | None = None
    dropping: str | None = None
    erasing: str | None = None
    listing_on_spark: str | None = None

    @property
    def files(self) -> FileFormat:
        """The format of its files."""
        return self.reading.files
