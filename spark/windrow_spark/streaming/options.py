"""Options of streams, as Spark passes them: texts, with names in any case."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from windrow_calls.arguments import checked, values_of_texts
from windrow_calls.errors import InvalidArgumentError
from windrow_core.models import PlanOptions, WritePlanRequest
from windrow_core.models.base import ByteSize, Request, Whole
from windrow_core.models.streams import QueryId
from windrow_spark.streaming.holding import Holding

_DURATION = re.compile(r"\s*(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[a-z]*)\s*", re.IGNORECASE)
_UNITS_S = {"": 1, "s": 1, "sec": 1, "second": 1, "m": 60, "min": 60, "minute": 60}
_UNITS_S |= {"h": 3600, "hour": 3600, "d": 86_400, "day": 86_400}
_DEFAULT_FILE_SIZE = 128 * 2**20
# Spark's own options of every stream.
_SPARKS = {"checkpointlocation", "queryname", "path", "table", "coordinator", "catalog"}
_COUNTED = {"keys", "keys_from", "rows", "table", "source_tasks", "parallelism"}


def _seconds(value: object) -> object:
    if not isinstance(value, str):
        return value
    match = _DURATION.fullmatch(value)
    unit = None if match is None else match["unit"].lower()
    if match is None or unit is None or _factor(unit) is None:
        raise ValueError(f"{value!r} is not a time: give seconds, or text such as '10min'")
    return float(match["number"]) * (_factor(unit) or 0)


def _factor(unit: str) -> int | None:
    return _UNITS_S.get(unit, _UNITS_S.get(unit.removesuffix("s")))


class SinkOptions(Request):
    """Options of a stream that writes to a table, besides those of its writes."""

    max_delay: Annotated[float, BeforeValidator(_seconds), Field(ge=0, le=7 * 86_400)] = Field(
        default=0.0,
        description="How long rows may wait to be written with those of later batches, as text "
        "such as `10min`, or in seconds. By default, each batch makes files of its own.",
    )
    min_file_size: ByteSize | None = Field(
        default=None,
        description="Batches wait, up to `max_delay`, until their files would have this many bytes "
        "on average: the target size by default, or none with `max_files_per_hour`.",
    )
    max_files_per_hour: Annotated[int, Whole(1, 10_000_000)] | None = Field(
        default=None,
        description="Batches wait, up to `max_delay`, until no more files than this are made in an "
        "hour.",
    )
    replaces_query: QueryId | None = Field(
        default=None,
        description="Id of an earlier query with the same name or checkpoint, whose checkpoint is "
        "gone: this query is a new stream, whose rows are all new.",
    )


class SourceOptions(Request):
    """Options of a stream that reads a table, besides those of its plans."""

    starting_snapshot: Annotated[int, Whole(1, 2**31 - 1)] | Literal["latest"] | None = Field(
        default=None,
        alias="startingSnapshot",
        description="Read only what is added after this snapshot, or after the one that is current "
        "when the query first starts (`latest`). By default, the whole table is read first.",
    )
    max_files: Annotated[int, Whole(1, 2**31 - 1)] | None = Field(
        default=None, alias="maxFilesPerTrigger", description="Most files of a batch."
    )
    max_bytes: ByteSize | None = Field(
        default=None,
        alias="maxBytesPerTrigger",
        description="Most bytes of files of a batch; a single file may have more.",
    )
    removed_files: Literal["fail", "ignore"] = Field(
        default="fail",
        alias="removedFiles",
        description="What happens when files that may have been read are gone or rewritten.",
    )


def source_options(texts: Mapping[str, str]) -> tuple[SourceOptions, dict[str, Any]]:
    """Return the options of a source, and those of its plans.

    Args:
        texts: The options by name in lower case.

    Raises:
        InvalidArgumentError: An option is unknown, or its value is not valid.
    """
    names = {str(field.alias).lower(): str(field.alias) for field in _SOURCE_FIELDS.values()}
    own = {names[name]: text for name, text in texts.items() if name in names}
    plans = values_of_texts({n: text for n, text in texts.items() if n not in {*names, *_SPARKS}})
    checked(PlanOptions, plans, also=names.values())
    return checked(SourceOptions, values_of_texts(own)), plans


_SOURCE_FIELDS = SourceOptions.model_fields


def sink_options(texts: Mapping[str, str]) -> tuple[SinkOptions, Holding, dict[str, Any]]:
    """Return the options of a sink, when its batches make files, and the options of its writes.

    Args:
        texts: The options by name in lower case.

    Raises:
        InvalidArgumentError: An option is unknown, or its value is not valid.
    """
    own = {name: text for name, text in texts.items() if name in SinkOptions.model_fields}
    writes = values_of_texts(
        {name: text for name, text in texts.items() if name not in {*own, *_SPARKS}}
    )
    for name in ("salt_columns",):
        if name in writes:
            writes[name] = [column.strip() for column in str(writes[name]).split(",")]
    for name in _COUNTED & writes.keys():
        raise InvalidArgumentError(name, f"a stream has no option {name!r}: leave it out")
    options = checked(
        SinkOptions, values_of_texts(own), also=WritePlanRequest.model_fields.keys() - _COUNTED
    )
    request = checked(WritePlanRequest, writes, also=SinkOptions.model_fields)
    waits = options.min_file_size is not None or options.max_files_per_hour is not None
    if waits and not options.max_delay:
        raise InvalidArgumentError(
            "max_delay", "say how long batches may wait at most: .option('max_delay', '10min')"
        )
    size = options.min_file_size
    if size is None and options.max_files_per_hour is None:
        size = request.target_file_size or _DEFAULT_FILE_SIZE
    return options, Holding(options.max_delay, size or 0, options.max_files_per_hour), writes
