"""Plan options that a Spark session sets: `SET spark.windrow.max_split_size=128MB`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

from windrow_calls.arguments import checked, values_of_texts
from windrow_core.models import PlanDefaults
from windrow_spark.placement import default_parallelism, require_classic
from windrow_spark.session_settings import settings_of

PREFIX = "spark.windrow."
# Settings that are no options of plans; `AcceleratedReads.java` reads the first, `InventoryAnswers.java`
# the next three.
_OF_OTHERS = {"accelerate", "figures", "inventory_counts", "packs", "warehouse"}
# Settings of statements that write; see `writing/options.py`.
_OF_WRITES = "write."


def session_options(spark: SparkSession) -> dict[str, Any]:
    """Return the plan options that a session sets now.

    `parallelism` is the number of tasks that the session runs at the same time, unless it is set.

    Raises:
        InvalidArgumentError: A setting under `spark.windrow.` is not an option, or its value is not
            valid.
        SparkConnectError: The session is one of Spark Connect.

    Example:
        spark.conf.set("spark.windrow.max_split_size", "128MB")
        windrow.spark.session_options(spark)
    """
    require_classic(spark)
    options = options_of_texts(settings_of(spark))
    return {"parallelism": options.get("parallelism") or default_parallelism(spark)} | options


def options_of_texts(settings: Mapping[str, str]) -> dict[str, Any]:
    """Return the plan options among the settings of a session."""
    texts = {
        name.removeprefix(PREFIX): value
        for name, value in settings.items()
        if name.startswith(PREFIX)
        and not name.startswith(PREFIX + _OF_WRITES)
        and name.removeprefix(PREFIX) not in _OF_OTHERS
    }
    options = checked(PlanDefaults, values_of_texts(texts), prefix=PREFIX)
    return options.model_dump(exclude_none=True)
