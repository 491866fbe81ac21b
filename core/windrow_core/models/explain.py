"""Wire models of the explanation of a plan."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from windrow_core.models.base import Answer, TableName
from windrow_core.models.options import OptionSource, PlanOptions
from windrow_core.models.plans import FilesInPacks


class PrunedFiles(Answer):
    """The files that one step of pruning removed from those that earlier steps had left."""

    step: Literal["manifest", "partition", "statistics", "bloom", "limit"]
    files: int
    size_bytes: int


class GroupReason(Answer):
    """The groups formed for one reason; each group counts for the first reason that applies."""

    reason: Literal["cacheable", "large", "no_location", "small"] = Field(
        description="`cacheable`: holds splits that are read where they are cached. `large`: a "
        "single split that fills the group, or a piece of a file that was cut. `no_location`: "
        "hosts of the table's files are known, but none holds enough of this group to be "
        "preferred. `small`: all others."
    )
    groups: int
    splits: int
    size_bytes: int


class WorkerPlacement(Answer):
    """The cacheable files that are read on one worker."""

    host: str | None = Field(description="Null for files that no worker has room for.")
    cached_files: int = Field(description="Number of files that the worker holds.")
    cached_bytes: int
    placed_files: int = Field(description="Number of files that it will fetch and then hold.")
    placed_bytes: int


class Locality(Answer):
    """Where a plan's data is stored, relative to the tasks that read it."""

    host_bytes: int = Field(description="Bytes on a host that their group prefers.")
    rack_bytes: int = Field(description="Bytes on other hosts in the rack of a preferred host.")
    elsewhere_bytes: int = Field(description="Bytes on any other host.")
    unknown_bytes: int = Field(description="Bytes in files whose hosts are unknown.")


class StrategyFigures(Answer):
    """Figures of one strategy for the same files.

    A cost model, the same for all strategies, predicts the times: each task, each file that it
    opens and each byte that it reads has a cost.
    """

    strategy: str
    group_count: int
    fewest_groups: int = Field(
        description="A lower bound on the groups of any plan under this strategy's limits."
    )
    fill: float = Field(
        description="Mean size of the groups as a fraction of `max_split_size`; 1 is full."
    )
    host_local_bytes: int
    longest_task_seconds: float
    slowest_slot_seconds: float = Field(
        description="When the last of the `parallelism` slots finishes."
    )
    all_tasks_seconds: float = Field(description="Sum of the times of all tasks.")


class DeleteOpens(Answer):
    """How often files that name deleted rows are opened."""

    by_group: int = Field(description="If each group opens those of all its splits once.")
    by_split: int = Field(description="If each split opened its own.")


class PlanExplanation(Answer):
    """An explanation of a plan, computed again from the snapshot that the plan is pinned to."""

    plan_id: str
    table: TableName
    snapshot_id: int
    options: PlanOptions
    option_sources: dict[str, OptionSource] = Field(
        default={}, description="Where the value of each option comes from."
    )
    open_file_cost: int = Field(
        description="Cost of opening a file in the predictions, as the number of bytes that could "
        "be read in the same time: from the plan's request, or else calibrated."
    )
    files_total: int
    files_planned: int
    size_bytes: int = Field(description="Size of the planned files.")
    split_count: int
    pruned: list[PrunedFiles] = Field(description="Pruned files by step, in the order of steps.")
    reasons: list[GroupReason]
    placements: list[WorkerPlacement] = Field(
        default=[], description="Cacheable files by worker; empty if no file is cacheable."
    )
    fill_histogram: Annotated[list[int], Field(min_length=10, max_length=10)] = Field(
        description="Number of groups filled to 0-10 %, 10-20 %, and so on."
    )
    locality: Locality
    delete_files: DeleteOpens | None = Field(
        default=None, description="Null if no delete files apply to the planned files."
    )
    in_packs: FilesInPacks | None = Field(
        default=None,
        exclude_if=lambda in_packs: in_packs is None,
        description="Files whose rows are read from packs, as the plan's summary says.",
    )
    strategies: list[StrategyFigures] = Field(
        description="The plan's own strategy comes first. For options that the request left out, "
        "each strategy uses its own default."
    )
