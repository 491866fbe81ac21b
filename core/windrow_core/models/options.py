"""Wire models of plan options: of a request, and as defaults of a table or a Spark session."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, ValidationError, model_validator

from windrow_core.models.base import ByteSize, Request, Size, Whole
from windrow_core.planning import StrategyName

CachedSplits: TypeAlias = Literal["separate", "by_worker"]
OptionSource: TypeAlias = Literal["request", "session", "table", "default"]

_Parallelism = Annotated[int, Whole(1, 1_000_000)]
_InitialSplits = Annotated[int, Whole(0, 1_000_000)]
_Lookback = Annotated[int, Whole(1, 100)]
_Part = Annotated[float, Field(gt=0, le=1, strict=True)]
_Files = Annotated[int, Whole(1, 10_000)]

# Options that the planner does not need; readers find them in the plan.
READING_OPTIONS = frozenset({"prefetch_files", "prefetch_bytes", "requests_per_second"})
# Sizes that must not exceed `max_split_size`, and all options that are bytes of splits.
SIZES_BELOW_MAXIMUM = ("min_split_size", "max_initial_split_size")
SPLIT_SIZES = ("max_split_size", *SIZES_BELOW_MAXIMUM, "open_file_cost")


def _is_not_set(value: object) -> bool:
    """Leave out an option that is not set: the previous version refuses options unknown to it."""
    return value is None


class PlanDefaults(Request):
    """Plan options that a table or a Spark session sets; null means not set.

    A request's own options come first, then the session's, then the table's.
    """

    strategy: StrategyName | None = Field(
        default=None,
        description="How splits are packed into groups: `balanced`, or as another system does it.",
    )
    max_split_size: ByteSize | None = Field(
        default=None, description="Maximum bytes of a group, and where large files are cut."
    )
    min_split_size: ByteSize | None = Field(
        default=None,
        description="`tez` and `iceberg` do not make groups smaller than this for the sake of "
        "parallelism. Default: 50 MB for `tez`, 16 MiB for `iceberg`.",
    )
    max_initial_split_size: ByteSize | None = Field(
        default=None,
        description="Maximum size of the initial splits, into which large files are cut; 32 MiB by "
        "default, or `max_split_size` if that is less.",
    )
    max_initial_splits: _InitialSplits | None = Field(
        default=None, description="Number of initial splits."
    )
    max_small_splits_grouped: Annotated[int, Whole(1, 10_000_000)] | None = Field(
        default=None,
        description="Maximum number of splits in one group; unlimited by default, but 10 for "
        "`openlookeng`.",
    )
    max_partition_num: _Parallelism | None = Field(
        default=None,
        description="`spark` makes its partitions larger, up to `max_split_size`, if there would "
        "be more of them than this; unlimited by default.",
    )
    planning_lookback: _Lookback | None = Field(
        default=None, description="Number of groups that `iceberg` fills at the same time."
    )
    rack_split_reduction: _Part | None = Field(
        default=None,
        description="Maximum length of a rack's group under `tez`, as a fraction of the length of "
        "a host's group.",
    )
    open_file_cost: Annotated[int, Size(0, 2**40)] | None = Field(
        default=None,
        description="Cost of opening a file, as the number of bytes that could be read in the same "
        "time; calibrated by default, but 4 MiB for `spark` and `iceberg`.",
    )
    parallelism: _Parallelism | None = Field(
        default=None, description="Number of tasks that run at the same time."
    )
    cached_splits: CachedSplits | None = Field(
        default=None,
        description="`separate`: each cacheable split is its own group. `by_worker`: cacheable "
        "splits of one bucket that are cached on the same worker may share a group. By default, "
        "`balanced` takes `by_worker` where cacheable splits have less than 16 MiB on average, and "
        "`separate` elsewhere.",
    )
    prefetch_files: _Files | None = Field(
        default=None,
        exclude_if=_is_not_set,
        description="On object stores and HDFS: number of small files that a task requests before "
        "it decodes them; 128 by default.",
    )
    prefetch_bytes: ByteSize | None = Field(
        default=None,
        exclude_if=_is_not_set,
        description="Maximum bytes of such files that a task holds; 16 MiB by default.",
    )
    requests_per_second: Annotated[float, Field(gt=0, le=1_000_000)] | None = Field(
        default=None,
        exclude_if=_is_not_set,
        description="Maximum number of requests per second that a read sends to object stores, "
        "divided evenly among the tasks that run at the same time; by default as many as the store "
        "answers.",
    )

    @model_validator(mode="after")
    def _in_order(self) -> PlanDefaults:
        # A maximum that is not given here may come from the session or the table.
        most = self.max_split_size if "max_split_size" in self.model_fields_set else None
        for name in SIZES_BELOW_MAXIMUM:
            size = getattr(self, name)
            if size is not None and most is not None and size > most:
                raise ValueError(
                    f"{name} ({size}) is above max_split_size ({most}): it may be 1 to {most}"
                )
        return self


def _default(name: str, value: Any) -> Any:
    """Return the field of an option that always has a value."""
    return Field(default=value, description=PlanDefaults.model_fields[name].description)


class PlanOptions(PlanDefaults):
    """How splits are grouped. Sizes are in bytes, or text such as `64MB`.

    Options that a request leaves out come from its `session_options`, then from the table's
    `plan_options`, and then from the defaults below.
    """

    strategy: StrategyName = _default("strategy", "balanced")
    max_split_size: ByteSize = _default("max_split_size", 64 * 2**20)
    max_initial_splits: _InitialSplits = _default("max_initial_splits", 0)
    planning_lookback: _Lookback = _default("planning_lookback", 10)
    rack_split_reduction: _Part = _default("rack_split_reduction", 0.75)
    parallelism: _Parallelism = _default("parallelism", 1)
    cached_splits: CachedSplits = _default("cached_splits", "separate")

    @classmethod
    def completed(cls, options: Mapping[str, Any]) -> PlanOptions:
        """Return the given options, with defaults for all others.

        Raises:
            ValueError: They contradict each other, or a default.
        """
        try:
            return cls.model_validate(cls().model_dump() | dict(options))
        except ValidationError as error:
            raise ValueError(error.errors()[0]["msg"].removeprefix("Value error, ")) from None
