"""What Spark's planner asks of acceleration: a dataclass for each request, with the keys of Java."""

from __future__ import annotations

from dataclasses import dataclass

from windrow_spark.relation.requests import Insert


@dataclass(frozen=True, kw_only=True)
class Place:
    """A path, or a table of Spark's catalog, from which Spark may take its partitions."""

    path: str
    table: str = ""
    in_catalog: bool
    format: str
    options: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class Read(Place):
    """What a query reads, where commands of this application write: their last number, and if any run."""

    running: bool
    writes: int


@dataclass(frozen=True, kw_only=True)
class Path(Read):
    """The columns that Spark would find in a path, of which the query may give the schema."""

    schema: str | None = None


@dataclass(frozen=True, kw_only=True)
class Columns(Place):
    """A table or path as Spark has resolved it, its schemas as JSON; `refusal` as in `Refused`."""

    target: str
    data: str
    partition_schema: str
    has_buckets: bool
    refusal: str | None = None


@dataclass(frozen=True, kw_only=True)
class Relation(Columns, Read):
    """A relation to read in place of Spark's."""


@dataclass(frozen=True, kw_only=True)
class Command(Columns, Insert):
    """What carries out a command in place of Spark's, whose `SaveMode` is `mode`."""

    mode: str
    has_partitions: bool


@dataclass(frozen=True)
class Refused:
    """What Spark plans, whatever Python says; `refusal` says why."""

    target: str
    refusal: str
