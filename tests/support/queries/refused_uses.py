"""Ways to write a table, and to use it in streams, that are refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from windrow.spark import plain_errors
from windrow_calls.errors import WindrowError
from windrow_spark.placement import is_classic

# Uses of streams, whose refusals name `foreachBatch`.
STREAMS = {"writeStream", "readStream"}

_STREAM_TIMEOUT_S = 60


def refusals(
    spark: SparkSession, table: str, options: Mapping[str, str], folder: Path
) -> dict[str, list[str]]:
    """Return what each use of a table is refused with, in Spark's words and by `plain_errors`.

    Args:
        spark: A session with the format `windrow` and the view `refused` of the table, classic or
            of Spark Connect.
        table: The table.
        options: Further options of the format.
        folder: A folder for the checkpoints of streams.
    """
    rows = spark.table("refused")
    stream = spark.readStream.format("rate").load().writeStream
    if is_classic(spark):
        # What is only added is not refused.
        stream = stream.outputMode("complete")
    options_text = ", ".join(
        f"{name} '{text}'" for name, text in {"table": table, **options}.items()
    )

    def write(mode: str) -> Any:
        return lambda: rows.write.format("windrow").options(**options).mode(mode).save(table)

    # What classic sessions write is in `statements.py`.
    of_connect: dict[str, Callable[[], Any]] = {
        "append": write("append"),
        "overwrite": write("overwrite"),
        "insertInto": lambda: rows.write.insertInto("refused"),
        "INSERT INTO": lambda: spark.sql("INSERT INTO refused SELECT * FROM refused"),
        "INSERT OVERWRITE": lambda: spark.sql("INSERT OVERWRITE refused SELECT * FROM refused"),
    }
    uses: dict[str, Callable[[], Any]] = {
        "CREATE TABLE AS": lambda: spark.sql(
            f"CREATE TABLE made USING windrow OPTIONS ({options_text}) AS SELECT * FROM refused"
        ),
        "saveAsTable": lambda: (
            rows.write.format("windrow").options(**options, table=table).saveAsTable("made")
        ),
        "writeStream": lambda: (
            stream.format("windrow")
            .options(**options, checkpointLocation=str(folder / "written"))
            .start(table)
            # On Spark Connect, a table is asked for its part once the server has started the stream.
            .awaitTermination(_STREAM_TIMEOUT_S)
        ),
        "readStream": lambda: (
            spark.readStream.format("windrow")
            .options(**options)
            .load(table)
            .writeStream.format("noop")
            .option("checkpointLocation", str(folder / "read"))
            .start()
            .awaitTermination(_STREAM_TIMEOUT_S)
        ),
    }
    if is_classic(spark):
        del uses["readStream"]
    else:
        uses |= of_connect
    return {name: _refusal(use) for name, use in uses.items()}


def _refusal(use: Callable[[], Any]) -> list[str]:
    """Return the first line of what Spark raises, and the text of `plain_errors`."""
    try:
        with plain_errors():
            use()
    except WindrowError as error:
        return [str(error.__cause__).partition("\n")[0], str(error)]
    except (PySparkException, Py4JError) as error:
        return [str(error).partition("\n")[0], ""]
    return ["not refused", ""]


def assert_words(uses: dict[str, list[str]]) -> None:
    """Assert that each refusal says in one line how to write instead."""
    for use, (_, words) in uses.items():
        assert "client.write" in words, use
        assert "\n" not in words
        assert ("foreachBatch" in words) == (use in STREAMS), use
