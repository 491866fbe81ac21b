"""The queries of the demo, and the ways to read its table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windrow.client import Client
from windrow_demo.measuring import Query, Side

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SPARK_DEFAULT, SPARK_TUNED, WINDROW = "spark-default", "spark-tuned", "windrow"
WINDROW_PACKED = "windrow-packed"
OURS = (WINDROW, WINDROW_PACKED)


def flight_queries() -> tuple[Query, ...]:
    """Return the demo's queries."""
    from pyspark.sql import functions as F

    def totals(flights: DataFrame) -> DataFrame:
        return flights.agg(
            F.count(F.lit(1)),
            F.count("dep_delay"),
            F.sum("dep_delay"),
            F.avg("dep_delay"),
            F.max("dep_delay"),
            F.sum("distance"),
        )

    def by_carrier(flights: DataFrame) -> DataFrame:
        return flights.groupBy("carrier").agg(
            F.countDistinct("tailnum"), F.count("dep_delay"), F.avg("dep_delay")
        )

    return (
        Query(
            name="aggregate",
            title="Plain aggregate",
            columns=("dep_delay", "distance"),
            ask=totals,
        ),
        Query(
            name="shuffle",
            title="With a shuffle: distinct aircraft and delays by carrier",
            columns=("carrier", "tailnum", "dep_delay"),
            ask=by_carrier,
        ),
    )


def sides(rows: DataFrame, client: Client, table: str) -> tuple[Side, ...]:
    """Return the ways to read a table: Spark with defaults and tuned by hand, Windrow without and with packs.

    Args:
        rows: Spark's own DataFrame of the table, whose files are already listed.
        client: Client that plans Windrow's reads.
        table: Name of the table.
    """
    session = rows.sparkSession
    return (
        Side(
            name=SPARK_DEFAULT,
            title="Spark, defaults",
            open=lambda _: rows,
            conf={},
        ),
        Side(
            name=SPARK_TUNED,
            title="Spark, openCostInBytes=0",
            open=lambda _: rows,
            conf={"spark.sql.files.openCostInBytes": "0"},
        ),
        Side(
            name=WINDROW,
            title="Windrow, planning included",
            open=lambda columns: client.read(session, table, columns=columns),
            conf={"spark.windrow.packs": "false"},
        ),
        Side(
            name=WINDROW_PACKED,
            title="Windrow, packed",
            open=lambda columns: client.read(session, table, columns=columns),
            # Otherwise it would read nothing at all.
            conf={"spark.windrow.figures": "false"},
        ),
    )
