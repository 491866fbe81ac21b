"""Which tables other engines can read, as far as definitions tell."""

from __future__ import annotations

from windrow_core.models import TableDefinition


def unfitness(definition: TableDefinition) -> str | None:
    """Return why other engines cannot read tables of a definition; None if they may."""
    reason = definition.kind.unfit_for_engines(definition.format_options)
    if reason is not None:
        return reason
    defaults = [one.name for one in definition.columns or () if one.default is not None]
    if defaults:
        return (
            f"column {defaults[0]!r} has a default, which engines do not know: write files that "
            "hold the column, or declare it without"
        )
    return None
