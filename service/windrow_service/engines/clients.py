"""What clients of Iceberg's REST protocol are known to do wrong."""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.types as pt

# The last one that was tried.
_PYICEBERG = re.compile(r"PyIceberg/0\.(?:[0-9]|1[0-2])\.")
# Iceberg's own client for Java, followed by its release. It does not say which engine it works for.
_JAVA = "Apache Iceberg "
_DUCKDB = "duckdb/"
# Readers that are known to read some files otherwise.
DUCKDB, ICEBERGS_JAVA, POLARS, PYICEBERG = "duckdb", "java", "polars", "pyiceberg"


def reader_behind(client: str, reader: str) -> str | None:
    """Return which of these readers a client loads a table for; None if for another one.

    Polars loads its tables by PyIceberg's client, and says so only if its user has it say so.

    Args:
        client: How the client calls itself.
        reader: The reader that its user names; empty if none.
    """
    if client.startswith(_DUCKDB):
        return DUCKDB
    if client.startswith(_JAVA):
        return ICEBERGS_JAVA
    if _PYICEBERG.match(client):
        return POLARS if reader == POLARS else PYICEBERG
    return None


def misreads_plans(client: str, partition: pa.Schema) -> bool:
    """Return whether a client fails on the partition values of plans, unlike on those of manifests.

    PyIceberg 0.12 keeps dates, times and decimals as texts.

    Args:
        client: How the client calls itself.
        partition: The partition columns.
    """
    return _PYICEBERG.match(client) is not None and not all(
        pt.is_string(type_) or pt.is_integer(type_) or pt.is_boolean(type_)
        for type_ in partition.types
    )


def misreads_nulls(client: str) -> bool:
    """Return whether a client fails on plans with null among the partition values."""
    return _PYICEBERG.match(client) is not None


def misreads_settings(client: str) -> bool:
    """Return whether a client takes any settings of a table for credentials, and fails without a region.

    DuckDB 1.5 does, and plans by itself unless it is told otherwise.
    """
    return client.startswith(_DUCKDB)


def asks_for_the_top_alone(client: str) -> bool:
    """Return whether a client asks for the namespaces at the top, and for none below them.

    DuckDB 1.5 does, unless its catalog is attached with `SUPPORT_NESTED_NAMESPACES`.
    """
    return client.startswith(_DUCKDB)
