"""What the JVM asks of Python: a dataclass for each request, whose fields are the keys in Java."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from windrow_spark.relation.filters import Tree

# --- of relations ---


@dataclass(frozen=True)
class Newest:
    """Which snapshot is newer; `last` is the last change of the thread that plans the query."""

    last: int | None = None


@dataclass(frozen=True)
class Partitions:
    """Which partitions there are."""


@dataclass(frozen=True)
class Figures:
    """What packs tell of columns, for each partition."""

    columns: Sequence[str]


@dataclass(frozen=True)
class Buckets:
    """Whether it is certain in which of so many buckets each file is."""

    count: int


@dataclass(frozen=True)
class Uris:
    """Which files there are."""


@dataclass(frozen=True, kw_only=True)
class Files:
    """Which files may have rows for conditions of Spark's, and ranges of partitions, if not all."""

    conditions: Sequence[Tree] = ()
    partitions: Sequence[tuple[int, int]] | None = None


@dataclass(frozen=True, kw_only=True)
class Scan(Files):
    """What a scan is to return.

    Attributes:
        types: The types of columns of which the query does not need all fields.
        metadata: Further columns, which tell the files of rows.
        names: Whether Spark's functions tell the files of rows.
        row_numbers: Whether Spark numbers the rows of files.
        buckets: The number of groups, one for each bucket; 0 if groups may be any.
        limit: How many rows are enough.
        first: How many rows may be enough, as other nodes leave out some.
    """

    columns: Sequence[str]
    types: Mapping[str, str]
    metadata: Sequence[str]
    names: bool
    row_numbers: bool
    columnar: bool
    buckets: int
    limit: int | None = None
    first: int | None = None


@dataclass(frozen=True, kw_only=True)
class Insert:
    """What a statement writes: `dynamic` replaces only partitions that get rows."""

    columns: Sequence[str]
    partition: Mapping[str, str | None]
    overwrite: bool
    dynamic: bool
    if_absent: bool


# --- of the format `windrow`, whose options are those of a reader, a writer or a view ---


@dataclass(frozen=True)
class Read:
    """The relation of a table."""

    options: Mapping[str, str]


@dataclass(frozen=True)
class Save:
    """The relation of a table to which rows are written first; `mode` is Spark's `SaveMode`."""

    options: Mapping[str, str]
    mode: str


@dataclass(frozen=True)
class Sink:
    """What takes the batches of a stream, by `Add`."""

    options: Mapping[str, str]


@dataclass(frozen=True)
class Add:
    """The rows of a batch of a stream, by its number."""

    batch: int


@dataclass(frozen=True)
class Stream:
    """What answers the source of a stream: `Columns`, `Last`, `Next` and `Batch`."""

    options: Mapping[str, str]


@dataclass(frozen=True)
class Columns:
    """The columns of a stream."""


@dataclass(frozen=True)
class Last:
    """A stream that ends with what there is now."""


@dataclass(frozen=True)
class Next:
    """The position up to which the next batch reads; both are texts of `Position`."""

    start: str | None


@dataclass(frozen=True)
class Batch(Next):
    """The rows between two positions."""

    end: str
