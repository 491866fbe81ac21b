"""Parse a filter, as SQL or a tree, and bind it to the columns of a table."""

from __future__ import annotations

import sys
from collections.abc import Mapping

import pyarrow as pa

from windrow_core.models import Filter
from windrow_service.filters.bind import bind
from windrow_service.filters.limits import FilterLimits
from windrow_service.filters.sql import parse_sql
from windrow_service.planner.pruning.expressions import Expression

# For filters that were accepted before: once bound, they may have more nodes than as sent.
UNLIMITED = FilterLimits(max_nodes=sys.maxsize, max_depth=sys.maxsize)


def read_filter(
    filter: Filter, types: Mapping[str, pa.DataType], limits: FilterLimits = UNLIMITED
) -> Expression:
    """Return a filter, bound to columns.

    Args:
        filter: The filter as given.
        types: Types of the columns, by name.
        limits: Limits on the filter's size.

    Raises:
        InvalidFilterError: It is too large, cannot be parsed, or names an unknown column.
    """
    bounds = {"max_nodes": limits.max_nodes, "max_depth": limits.max_depth}
    parsed = parse_sql(filter, **bounds) if isinstance(filter, str) else filter
    return bind(parsed, types, **bounds)
