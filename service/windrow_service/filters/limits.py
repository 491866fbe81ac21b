"""The limits on the size of a filter."""

from __future__ import annotations

from dataclasses import dataclass

from windrow_core.models import FilterTree, Junction, Not
from windrow_service.filters.errors import InvalidFilterError

# Each condition looks at every file: with a million files, this many take seconds.
MAX_NODES = 2_000
MAX_DEPTH = 90


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterLimits:
    """Most nodes and most levels of a filter."""

    max_nodes: int
    max_depth: int


def too_many_nodes(max_nodes: int) -> str:
    """Return the reason for refusing a filter with more nodes than the limit."""
    return (
        f"the filter has more than {max_nodes:,} conditions: "
        "use IN for many values of one column, or a shorter filter and DataFrame.filter"
    )


def too_deep(max_depth: int) -> str:
    """Return the reason for refusing a filter that is nested more deeply than the limit."""
    return f"the filter is nested more than {max_depth:,} levels deep: use fewer levels"


def check_size(tree: FilterTree, max_nodes: int, max_depth: int) -> None:
    """Refuse a tree that is too large; a single condition has one node and depth 1."""
    count = 0
    level: list[FilterTree] = [tree]
    depth = 0
    while level:
        depth += 1
        count += len(level)
        if count > max_nodes:
            raise InvalidFilterError(too_many_nodes(max_nodes))
        if depth > max_depth:
            raise InvalidFilterError(too_deep(max_depth))
        below: list[FilterTree] = []
        for node in level:
            if isinstance(node, Not):
                below.append(node.arg)
            elif isinstance(node, Junction):
                below.extend(node.args)
        level = below
