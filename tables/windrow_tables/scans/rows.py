"""Rows that can be had in several forms."""

from __future__ import annotations

from abc import ABC, abstractmethod
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from windrow_calls.terminal.waiting import waiting
from windrow_core.cards import Shown
from windrow_tables.errors import UnfitReadError

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


class Rows(Shown, ABC):
    """Rows of a table; each method that returns rows reads them again.

    Any library that takes Arrow streams (`__arrow_c_stream__`) takes such an object.
    """

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """The columns, with their types in Arrow."""

    @abstractmethod
    def to_reader(self) -> pa.RecordBatchReader:
        """Return the rows batch by batch, in bounded memory."""

    def to_table(self) -> pa.Table:
        """Return all rows as a table of pyarrow.

        Example:
            client.scan("sales.events", limit=10).to_table().column_names
        """
        with waiting("reading rows"):
            return self.to_reader().read_all()

    def to_pandas(self, **options: Any) -> pd.DataFrame:
        """Return all rows as a DataFrame of pandas.

        Args:
            **options: As for `pyarrow.Table.to_pandas`.

        Example:
            client.scan("sales.events", limit=10).to_pandas().describe()
        """
        required("pandas")
        rows: pd.DataFrame = self.to_table().to_pandas(**options)
        return rows

    def to_polars(self) -> pl.DataFrame:
        """Return all rows as a DataFrame of Polars.

        Example:
            client.scan("sales.events", limit=10).to_polars().head()
        """
        polars = required("polars")
        rows: pl.DataFrame = polars.from_arrow(self.to_table(), rechunk=False)
        return rows

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self.schema.__arrow_c_schema__()


def required(package: str) -> Any:
    """Return a package that users bring along."""
    try:
        return import_module(package)
    except ModuleNotFoundError as error:
        raise UnfitReadError(
            f"rows cannot be given to {package}, which is not installed here",
            f"pip install {package}",
        ) from error
