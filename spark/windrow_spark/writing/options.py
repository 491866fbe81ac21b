"""Options of statements that write: of a writer, or set by `SET spark.windrow.write.…`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, get_args

from pyspark.sql import SparkSession

from windrow_calls.arguments import values_of_texts
from windrow_calls.errors import InvalidArgumentError
from windrow_core.models import WriteConflict, WritePlanRequest
from windrow_spark.session_settings import settings_of
from windrow_spark.writing.write import Counts

PREFIX = "spark.windrow.write."
# What a statement itself decides, or the coordinator alone.
_NO_OPTIONS: Final = {"table", "rows", "keys", "keys_from", "source_tasks", "compare"}
_CHOICES: Final[Mapping[str, tuple[Any, ...]]] = {
    "counts": get_args(Counts),
    "conflict": get_args(WriteConflict),
    "progress": (True, False),
}
OF_PLANS: Final = tuple(name for name in WritePlanRequest.model_fields if name not in _NO_OPTIONS)
NAMES: Final = (*_CHOICES, *OF_PLANS)


def write_options(spark: SparkSession, options: Mapping[str, str]) -> dict[str, Any]:
    """Return the arguments of a write; options of a writer take precedence over settings.

    Args:
        spark: A classic session, whose settings count.
        options: Options of a writer, by name in any case.

    Raises:
        InvalidArgumentError: There is no such option, or a value is not one of it.
    """
    settings = {
        name.removeprefix(PREFIX): text
        for name, text in settings_of(spark).items()
        if name.startswith(PREFIX)
    }
    lower = {name.lower(): text for name, text in options.items()}
    for prefix, texts in ((PREFIX, settings), ("", lower)):
        for name in texts:
            if name not in NAMES:
                raise InvalidArgumentError(
                    prefix + name,
                    f"there is no option {prefix + name!r} of writes, only {', '.join(NAMES)}"
                    + (", and compression, maxRecordsPerFile and parquet.…" if not prefix else ""),
                )
    return {name: _value(name, text) for name, text in (settings | lower).items()}


def _value(name: str, text: str) -> Any:
    if name == "salt_columns":
        return [column.strip() for column in text.split(",")]
    value: Any = values_of_texts({name: text})[name]
    if name in _CHOICES:
        value = {"true": True, "false": False}.get(text.lower(), value)
        if value not in _CHOICES[name]:
            choices = ", ".join(str(choice).lower() for choice in _CHOICES[name])
            raise InvalidArgumentError(name, f"{name}={text!r}: it must be one of {choices}")
    return value
