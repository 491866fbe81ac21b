"""Keeps pandas out of processes that have no use for it."""

from __future__ import annotations

import sys


def keep_pandas_out() -> None:
    """Keep pyarrow from importing pandas, which it does only to check whether values are pandas'.

    The import takes 60 MB, and longer than reading most tables.
    """
    sys.meta_path.insert(0, _NoPandas())


class _NoPandas:
    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("not needed by this process", name=name)
