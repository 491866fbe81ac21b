"""Random filters of PyIceberg."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, TypeAlias

from hypothesis import strategies as st
from pyiceberg import expressions as ice

# For each column, values that filters compare it with.
Values: TypeAlias = Mapping[str, st.SearchStrategy[Any]]
Filters: TypeAlias = st.SearchStrategy[ice.BooleanExpression]
_COMPARISONS: tuple[Any, ...] = (
    ice.LessThan,
    ice.LessThanOrEqual,
    ice.GreaterThan,
    ice.GreaterThanOrEqual,
    ice.EqualTo,
    ice.NotEqualTo,
)
_UNARY: tuple[Any, ...] = (ice.IsNull, ice.NotNull)
_LISTED: tuple[Any, ...] = (ice.In, ice.NotIn)
_PREFIXED: tuple[Any, ...] = (ice.StartsWith, ice.NotStartsWith)


def conditions_on(name: str, values: st.SearchStrategy[Any], *, is_text: bool) -> Filters:
    """Return conditions on a column.

    Args:
        name: The column.
        values: Values to compare it with.
        is_text: Whether its values have prefixes.
    """
    lists = st.lists(values, min_size=2, max_size=4, unique=True)
    kinds: list[st.SearchStrategy[Any]] = [values.map(partial(kind, name)) for kind in _COMPARISONS]
    kinds += [st.just(name).map(kind) for kind in _UNARY]
    kinds += [lists.map(partial(kind, name)) for kind in _LISTED]
    if is_text:
        kinds += [values.map(partial(kind, name)) for kind in _PREFIXED]
    return st.one_of(kinds)


def filters_of(conditions: Filters, most: int) -> Filters:
    """Return filters that join at most so many conditions by AND, OR and NOT."""
    return st.recursive(
        conditions,
        lambda inner: st.one_of(
            st.builds(ice.And, inner, inner), st.builds(ice.Or, inner, inner), inner.map(ice.Not)
        ),
        max_leaves=most,
    )
