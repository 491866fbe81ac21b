"""Temporary views of tables: their names, and what they read."""

from __future__ import annotations

from pyspark.sql import SparkSession

from windrow_calls.errors import InvalidArgumentError
from windrow_spark.relation.pins import pin_of


def free_name(spark: SparkSession, table: str) -> str:
    """Return the name of a table's view: the last part of its own.

    Raises:
        InvalidArgumentError: A temporary view of this name reads something else.
    """
    name = table.rpartition(".")[2]
    view = spark._jsparkSession.sessionState().catalog().getTempView(name)
    if view.isEmpty():
        return name
    leaves = view.get().collectLeaves()
    pins = [pin_of(leaves.apply(at)) for at in range(leaves.size())]
    tables = {None if pin is None else pin.table for pin in pins}
    if tables == {table}:
        return name
    what = " and ".join(sorted(one for one in tables if one is not None)) or "something else"
    raise InvalidArgumentError(
        "name",
        f"the temporary view {name!r} reads {what}: give the view of {table!r} another name, such "
        f"as name={table.replace('.', '_')!r}, or replace that one with name={name!r}",
    )
