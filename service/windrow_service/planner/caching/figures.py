"""How many of the cacheable files workers hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windrow_service.planner.caching.cacheable import MarkingRule
from windrow_service.planner.caching.file_keys import Holding, file_keys
from windrow_service.planner.splits import Bools, Hashes, Ints


@dataclass(frozen=True, slots=True)
class Amount:
    """A number of files, and their bytes."""

    files: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class HostFigures:
    """The files of a table that one host holds.

    Attributes:
        host: Name of the host.
        cacheable: How many of them are cacheable.
        other_files: How many are not cacheable, or are older versions of files.
    """

    host: str
    cacheable: Amount
    other_files: int


@dataclass(frozen=True, slots=True)
class CacheFigures:
    """How much of a table is cacheable, and how much of that is cached.

    Attributes:
        cacheable: Files that at least one rule marks, each counted once.
        cached: Cacheable files that at least one host holds.
        rules: For each rule, the files that it marks and how many of them are cached.
        hosts: Figures of each host, ordered by name.
    """

    cacheable: Amount
    cached: Amount
    rules: tuple[tuple[Amount, Amount], ...]
    hosts: tuple[HostFigures, ...]


def cache_figures(
    files: pa.Table, rules: Sequence[MarkingRule | None], holdings: Sequence[Holding]
) -> CacheFigures:
    """Count the cacheable and the cached files.

    Args:
        files: An inventory that contains every file that any rule marks.
        rules: The rules that make files cacheable; None marks nothing.
        holdings: The files of the table that each worker holds.

    Complexity: O(n log n) for n files, and O(n) for each rule; O(n) memory.
    """
    sizes: Ints = files["size_bytes"].to_numpy()
    keys = file_keys(files)
    order = np.argsort(keys)
    keys = keys[order]
    rows_of = {host: (len(of), order[_positions(keys, of)]) for host, of in _by_host(holdings)}
    cached = np.zeros(len(files), np.bool_)
    for _, rows in rows_of.values():
        cached[rows] = True
    cacheable = np.zeros(len(files), np.bool_)
    by_rule = []
    for rule in rules:
        marked = np.zeros(len(files), np.bool_) if rule is None else rule.marks(files)
        by_rule.append((_amount(sizes, marked), _amount(sizes, marked & cached)))
        cacheable |= marked
    by_host = []
    for host, (count, rows) in rows_of.items():
        here = rows[cacheable[rows]]
        by_host.append(HostFigures(host, _amount(sizes, here), count - len(here)))
    return CacheFigures(
        cacheable=_amount(sizes, cacheable),
        cached=_amount(sizes, cacheable & cached),
        rules=tuple(by_rule),
        hosts=tuple(by_host),
    )


def _by_host(holdings: Sequence[Holding]) -> list[tuple[str, Hashes]]:
    keys: dict[str, Hashes] = {}
    for holding in holdings:
        # Several workers may run on one host.
        before = keys.get(holding.host)
        keys[holding.host] = holding.keys if before is None else np.union1d(before, holding.keys)
    return sorted(keys.items())


def _positions(keys: Hashes, host_keys: Hashes) -> Ints:
    """Return the positions in `keys`, which is ascending, of the keys that are held."""
    at = np.searchsorted(keys, host_keys)
    inside = at < len(keys)
    at, host_keys = at[inside], host_keys[inside]
    positions: Ints = at[keys[at] == host_keys]
    return positions


def _amount(sizes: Ints, which: Bools | Ints) -> Amount:
    selection = sizes[which]
    return Amount(len(selection), int(selection.sum()))
