"""Wire models of the work of maintenance: what is decided, done, and left alone, and why."""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, StrictBool, StringConstraints, model_validator

from windrow_core.models.base import Answer, Request, TableName, Whole
from windrow_core.models.filters import FilterTree
from windrow_core.models.maintenance import POLICY_PATTERN, EffectivePolicy
from windrow_core.models.packs import PackingRequest

WorkState: TypeAlias = Literal["waiting", "running", "done", "gave_up", "failed"]
ReceiptState: TypeAlias = Literal["waiting", "running", "done", "gave_up", "failed", "left_alone"]

CLAIM_ID_PATTERN = "^[0-9a-f]{32}$"
_LEASE = Annotated[int, Whole(5, 3_600)]
_Text = Annotated[str, StringConstraints(max_length=2_000, pattern=r"^[^\x00]*$")]
_MAX_COUNT = 2**50


def _is_missing(value: object) -> bool:
    return value is None


class WorkPrediction(Answer):
    """What a rewrite is expected to cost and to gain; seconds are those of one core."""

    partitions: int
    files: int = Field(description="Number of small files that are rewritten.")
    becomes: int = Field(description="Number of files that they become.")
    size_bytes: int
    cost_seconds: float = Field(
        description="By the cost model, as corrected by the receipts of the table, with what each "
        "piece of work costs whatever its size."
    )
    gain_seconds: float = Field(
        description="What each read of all of these partitions saves, corrected in the same way."
    )
    reads_per_day: float = Field(
        description="Expected reads of a partition, on average over what each read saves."
    )
    lasting_days: float = Field(
        default=0.0,
        description="How long these reads are expected to save it: `saved_seconds` is "
        "`gain_seconds` times `reads_per_day` times this.",
    )
    saved_seconds: float = Field(description="What all expected reads save together.")
    score: float = Field(description="Seconds of reading saved for each second of rewriting.")


class PartitionRemoval(Answer):
    """Partitions that a policy does not keep, because they are too old."""

    column: str = Field(description="The partition column that has the days.")
    before: date = Field(description="The first day that stays.")
    zone: str = Field(description="Where that day begins.")
    partitions: int
    files: int
    size_bytes: int
    rows: int | None = Field(description="Null if the rows of a file are not known.")
    others: int = Field(
        description="Number of partitions that stay because their value is not a date."
    )
    sentinels: int = Field(
        default=0, description="Number that stay because their day is before `keep_before`."
    )
    share: float = Field(
        default=0.0,
        description="Share of the table that all old partitions are: of its partitions, files or "
        "bytes, whichever is most.",
    )
    newest: date | None = Field(
        default=None,
        description="The newest day of the table's partitions that is not after tomorrow.",
    )
    keep_days: int | None = Field(
        default=None, description="How many days the policy keeps, for workers to compare."
    )
    may_drop_all: bool = Field(
        default=False, description="Whether even the newest day may be dropped."
    )


class WorkOutcome(Request):
    """What a worker did."""

    partitions: Annotated[int, Whole(0, _MAX_COUNT)] = 0
    files_before: Annotated[int, Whole(0, _MAX_COUNT)] = 0
    files_after: Annotated[int, Whole(0, _MAX_COUNT)] = 0
    bytes_before: Annotated[int, Whole(0, _MAX_COUNT)] = 0
    bytes_after: Annotated[int, Whole(0, _MAX_COUNT)] = 0
    rows: Annotated[int, Whole(0, _MAX_COUNT)] = 0
    core_seconds: Annotated[float, Field(ge=0, le=1e9, strict=True)] = Field(
        default=0.0, description="Seconds of all cores that worked on it, together."
    )
    seconds: Annotated[float, Field(ge=0, le=1e9, strict=True)] = Field(
        default=0.0, description="Duration of the run."
    )


class RealisedGain(Answer):
    """What later reads of a table saved, compared with the same reads before the rewrite."""

    reads: int = Field(description="Number of later plans that were compared.")
    files_before: float = Field(description="Files of such a plan before, on average.")
    files_after: float
    gain_seconds: float = Field(description="Seconds of one core that each of them saves.")
    predicted_seconds: float = Field(description="What was predicted for the same reads.")


class MaintenanceReceipt(Answer):
    """One decision: partitions to rewrite and the outcome, or why partitions are left alone."""

    number: int = Field(description="Higher than that of every earlier receipt.")
    table: str
    state: ReceiptState
    reason: str = Field(description="Name of the reason, such as `quiet`; of work, its state.")
    text: str = Field(description="The reason in words.")
    times: int = Field(
        default=1, description="How often the same was decided within a day; of work, its attempts."
    )
    first_at: datetime
    last_at: datetime
    worker: str | None = Field(default=None, description="The worker that has the work, or had it.")
    lease_until: datetime | None = Field(
        default=None,
        description="Of work that runs: once this is past, its worker is gone, and the next one "
        "that asks for work gets it.",
    )
    folders: list[str] = Field(
        default=[], description="At most ten of the partitions, relative to the table's location."
    )
    prediction: WorkPrediction | None = None
    removal: PartitionRemoval | None = Field(
        default=None, description="What is to be dropped, of work that drops old partitions."
    )
    packing: PackingRequest | None = Field(
        default=None,
        description="Which files are copied into packs, of work that packs them.",
        exclude_if=_is_missing,
    )
    outcome: WorkOutcome | None = None
    gain: RealisedGain | None = Field(
        default=None, description="The measured gain, after enough later reads."
    )


class ReceiptPage(Answer):
    """One page of receipts, newest first."""

    receipts: list[MaintenanceReceipt]
    next_page_token: str | None = None


class ClaimRequest(Request):
    """A worker's request for work."""

    worker: Annotated[str, StringConstraints(min_length=1, max_length=128, pattern="^[!-~]+$")] = (
        Field(description="Name of the worker, such as its host and process, for receipts.")
    )
    lease_seconds: _LEASE = Field(
        default=60,
        description="How long the work belongs to the worker unless it renews its lease.",
    )
    pattern: Annotated[str, StringConstraints(pattern=POLICY_PATTERN, max_length=256)] = Field(
        default="*", description="Only work on these tables."
    )
    without_spark: StrictBool = Field(
        default=False,
        description="Only work that needs no Spark: packing files, and dropping old partitions.",
        exclude_if=lambda value: not value,
    )


class WorkRequest(Request):
    """What is to be compacted before all other work, because somebody wants it now."""

    folder: (
        Annotated[str, StringConstraints(min_length=1, max_length=1_024, pattern=r"^[^\x00]*$")]
        | None
    ) = Field(
        default=None,
        description="Only the partition in this folder, relative to the table's location, such as "
        "`ds=2026-11-01`; by default all partitions that the table's policy does not leave alone.",
    )
    readers_may_see_both: StrictBool = Field(
        default=False,
        description=(
            "Consent for a table on HDFS or S3, unless its policy has it: until the old files "
            "are removed, readers that list folders may find old and new files, and so every row "
            "twice."
        ),
    )


class QueuedWork(Answer):
    """How much work waits now because somebody asked for it."""

    items: int = Field(
        description="Number of pieces of work, each for one worker; 0 if there are no small files "
        "to merge, or if workers have them already."
    )


class WithdrawnWork(Answer):
    """How much work no longer waits, because the request for it was withdrawn."""

    items: int = Field(
        description="Number of pieces of work; 0 if none waited, or if workers have them already."
    )


class WorkItem(Answer):
    """Work that belongs to one worker as long as it renews its lease."""

    claim_id: str
    number: int = Field(description="Number of its receipt.")
    table: TableName
    folders: list[str] = Field(
        description="Partitions to rewrite, as folders; to drop, as values such as `ds=2026-01-01`."
    )
    target_file_size: int
    small_file_size: int | None = Field(
        default=None,
        description="Only files smaller than this are rewritten; null for all that are small.",
    )
    min_files: int
    min_age_seconds: int = Field(
        default=0,
        description="A partition that was written to within that time, when its turn comes, is left "
        "alone.",
    )
    readers_may_see_both: bool
    prediction: WorkPrediction
    removal: PartitionRemoval | None = Field(
        default=None,
        description="Set if the partitions are to be dropped, not rewritten: those that `filter` "
        "selects.",
    )
    filter: FilterTree | None = None
    packing: PackingRequest | None = Field(
        default=None,
        description="Set if files are to be copied into packs, not rewritten: those of a plan for "
        "this request. `folders` then names no folder.",
        exclude_if=_is_missing,
    )
    lease_until: datetime


class ClaimUpdate(Request):
    """A worker's progress, or the end of its work."""

    state: Literal["running", "done", "gave_up", "failed"] = Field(
        description="`running` renews the lease; `gave_up`: a writer was faster."
    )
    lease_seconds: _LEASE = 60
    text: _Text = Field(default="", description="What happened, in words.")
    outcome: WorkOutcome | None = None

    @model_validator(mode="after")
    def _fits(self) -> ClaimUpdate:
        if self.state == "done" and self.outcome is None:
            raise ValueError("work that is done has an outcome")
        return self


class BudgetLeft(Answer):
    """What maintenance may still use."""

    core_seconds: float
    size_bytes: float | None = Field(description="Null if bytes are not limited.")


class MaintenanceRound(Answer):
    """One round of decisions about all tables."""

    began_at: datetime
    seconds: float
    tables: int = Field(description="Number of tables that a policy applies to.")
    partitions: int = Field(description="Number of their partitions with files to merge.")
    items: int = Field(description="Number of work items that wait for a worker.")
    excess_files: int = Field(
        description="By how many the files of these partitions would become fewer."
    )
    left: BudgetLeft = Field(description="What is left once the items are done.")


class TableMaintenance(Answer):
    """How a table is maintained, and why; what was decided about it."""

    table: TableName
    policy: EffectivePolicy
    sources: dict[str, str] = Field(
        description="The pattern of the policy that sets a field; fields without one have their "
        "default."
    )
    decided_at: datetime | None = Field(
        default=None, description="When the last round of decisions began; null if none has run."
    )
    receipts: list[MaintenanceReceipt] = Field(
        default=[], description="The newest receipts of the last day, newest first."
    )


class TableRetention(Answer):
    """What a policy would drop of one table now, or why it would drop nothing."""

    table: TableName
    removal: PartitionRemoval | None = Field(
        description="What would be dropped; null if nothing would be."
    )
    values: list[str] = Field(
        description=(
            "At most twenty of the values that would be dropped, such as `ds=2026-01-01`, oldest "
            "first."
        )
    )
    text: str = Field(description="The same in words, or why nothing would be dropped.")


class RetentionPreview(Answer):
    """What a policy would drop now, of each table that it applies to."""

    tables: list[TableRetention] = Field(
        description="At most 1,000: those of which something would be dropped, by name, then the "
        "others."
    )
    partitions: int
    files: int
    size_bytes: int
