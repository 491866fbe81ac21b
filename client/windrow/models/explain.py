"""Why a plan is as it is, on the wire."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from windrow.models.base import Answer, TableName
from windrow.models.plans import PlanOptions


class PrunedFiles(Answer):
    """What one step of pruning ruled out of what the steps before it had left."""

    step: Literal["manifest", "partition", "statistics", "bloom", "limit"]
    files: int
    size_bytes: int


class GroupReason(Answer):
    """The groups that are as they are for one reason; each group has one, the first that holds."""

    reason: Literal["cacheable", "large", "no_location", "small"] = Field(
        description="`cacheable`: holds splits that are read where they are cached. `large`: one "
        "split that fills a group, or a piece of a file that was cut. `no_location`: hosts of the "
        "table are known, but none holds enough of this group to be preferred. `small`: all others."
    )
    groups: int
    splits: int
    size_bytes: int


class WorkerPlacement(Answer):
    """The cacheable files that are read at one worker."""

    host: str | None = Field(description="Null are those that no worker has room for.")
    cached_files: int = Field(description="That it holds.")
    cached_bytes: int
    placed_files: int = Field(description="That it fetches, and holds from then on.")
    placed_bytes: int


class Locality(Answer):
    """Where a plan's bytes lie, as seen from the tasks that read them."""

    host_bytes: int = Field(description="On a host that their group prefers.")
    rack_bytes: int = Field(description="Not there, but in the rack of such a host.")
    elsewhere_bytes: int = Field(description="On other hosts.")
    unknown_bytes: int = Field(description="In files of which no host is known.")


class StrategyFigures(Answer):
    """What a strategy makes of the same files.

    Times are predicted by a cost model: a task costs something in itself, and so does each
    file that it opens and each byte that it reads. It is the same for all strategies.
    """

    strategy: str
    group_count: int
    fewest_groups: int = Field(
        description="A bound that no plan under the limits of this strategy can go below."
    )
    fill: float = Field(
        description="Mean size of the groups, in parts of `max_split_size`; 1 is full."
    )
    host_local_bytes: int
    longest_task_seconds: float
    slowest_slot_seconds: float = Field(description="When the last of `parallelism` slots is done.")
    all_tasks_seconds: float = Field(description="All tasks, one after another.")


class PlanExplanation(Answer):
    """Why a plan is as it is, worked out anew from the snapshot that it is pinned to."""

    plan_id: str
    table: TableName
    snapshot_id: int
    options: PlanOptions
    open_file_cost: int = Field(
        description="What opening a file costs in the predictions, in bytes of reading: as the "
        "request for the plan says, else as calibrated."
    )
    files_total: int
    files_planned: int
    size_bytes: int = Field(description="Of the files that are planned.")
    split_count: int
    pruned: list[PrunedFiles] = Field(description="By step, in the order of the steps.")
    reasons: list[GroupReason]
    placements: list[WorkerPlacement] = Field(
        default=[], description="Of cacheable files, by worker; none where no file is cacheable."
    )
    fill_histogram: Annotated[list[int], Field(min_length=10, max_length=10)] = Field(
        description="How many groups are filled less than 10 %, less than 20 %, and so on."
    )
    locality: Locality
    strategies: list[StrategyFigures] = Field(
        description="The plan's own strategy first. What the request left open is for each as "
        "it has it by default."
    )
