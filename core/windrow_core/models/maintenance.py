"""Wire models of maintenance: policies, which tables they apply to, and the budget."""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated

from pydantic import BeforeValidator, Field, StrictBool, StringConstraints

from windrow_core.models.base import (
    TABLE_NAME_PATTERN,
    Answer,
    ByteSize,
    ColumnName,
    Request,
    Whole,
)
from windrow_core.models.filters import Filter

POLICY_PATTERN = rf"^(\*|{TABLE_NAME_PATTERN[1:-1]}(\.\*)?)$"
ZONE_PATTERN = r"^[A-Za-z][A-Za-z0-9_+-]{0,31}(/[A-Za-z0-9_+-]{1,32}){0,2}$"
WINDOW_PATTERN = (
    r"^([01][0-9]|2[0-3]):[0-5][0-9]-([01][0-9]|2[0-3]):[0-5][0-9]"
    rf"( {ZONE_PATTERN[1:-1]})?$"
)
MAX_MIN_AGE_S = 366 * 86_400
MAX_KEEP_DAYS = 36_500
# Earlier days are those that programs write for a day that they do not know: the first of their
# calendar, 1900-01-01, 1970-01-01, 1980-01-01, 2000-01-01.
FIRST_REAL_DAY = date(2000, 1, 2)
_MAX_WINDOWS = 24
MAX_EXEMPT_FOLDERS = 100

Window = Annotated[str, StringConstraints(pattern=WINDOW_PATTERN, max_length=128)]
_Folder = Annotated[str, StringConstraints(min_length=1, max_length=1_024, pattern=r"^[^\x00]*$")]


def _is_missing(value: object) -> bool:
    return value is None


def _day_or_text(value: object) -> object:
    # Pydantic takes a number for seconds since 1970.
    if not isinstance(value, str | date):
        raise ValueError("it must be a day such as '2000-01-02'")
    return value


class PolicyDefinition(Request):
    """How the tables of a pattern are maintained; fields that are not set are left to others."""

    enabled: StrictBool = Field(
        default=True,
        description="Whether the tables are maintained. The most specific policy decides, so that "
        "`false` for `sales.events` excludes this table from `sales.*`.",
    )
    target_file_size: ByteSize | None = Field(
        default=None,
        description="Target size of a file in bytes, or as text such as '256MB'; 128MB by default.",
    )
    min_files: Annotated[int, Whole(2, 1_000_000)] | None = Field(
        default=None,
        description="Partitions with fewer small files than this are left alone; 2 by default.",
    )
    min_gain: Annotated[float, Field(ge=0, le=1e6, strict=True)] | None = Field(
        default=None,
        description="The smallest useful gain: seconds of reading that each second of rewriting "
        "must be expected to save, as often as the partition is read; 1 by default.",
    )
    reads_per_day: Annotated[float, Field(ge=0, le=1e6, strict=True)] | None = Field(
        default=None,
        description=(
            "Reads of each partition to expect in any case, for tables that are also read "
            "without Windrow, whose reads are not in the history of plans; 0 by "
            "default."
        ),
    )
    min_age_seconds: Annotated[int, Whole(0, MAX_MIN_AGE_S)] | None = Field(
        default=None,
        description=(
            "Quiet time: partitions that were written to more recently are left alone, such as "
            "one that is still being written; 900 by default."
        ),
    )
    windows: Annotated[list[Window], Field(min_length=1, max_length=_MAX_WINDOWS)] | None = Field(
        default=None,
        description="When work may begin, such as `22:00-06:00`, in UTC, or with a time zone, "
        "`22:00-06:00 Europe/Berlin`; at any time by default.",
    )
    max_share: Annotated[float, Field(gt=0, le=1, strict=True)] | None = Field(
        default=None,
        description="Most of each hour's budget that one table may use, such as 0.25; all of it by "
        "default.",
    )
    filter: Filter | None = Field(
        default=None,
        description="Partitions to maintain, as a filter on partition columns only; the others are "
        "left alone. All by default.",
    )
    keep_days: Annotated[int, Whole(1, MAX_KEEP_DAYS)] | None = Field(
        default=None,
        description=(
            "Retention, and consent to it: partitions are dropped, with their files, once the "
            "day in their value is more than this many days before today. By default, all "
            "partitions are kept. A partition whose value is not a date is never dropped. The "
            "first round "
            "that finds old partitions of a table, or more than half of it, announces them, and "
            "the "
            "next drops them."
        ),
    )
    keep_by: ColumnName | None = Field(
        default=None,
        description="The partition column with the day, of type `date`, `timestamp`, "
        "`timestamp_ntz` or `string`; by default the only one that has dates, where a text column "
        "counts only if every value is a whole date. A text of the column that is named here may "
        "also be a year or a month, which stands for its last day.",
    )
    keep_zone: Annotated[str, StringConstraints(pattern=ZONE_PATTERN, max_length=98)] | None = (
        Field(
            default=None,
            description="The time zone in which days begin, such as `Europe/Berlin`; UTC by default.",
        )
    )
    keep_before: Annotated[date, BeforeValidator(_day_or_text)] | None = Field(
        default=None,
        description=(
            "Keep all days before this one, which usually stand for something else, such as "
            "1970-01-01 for an unknown day; 2000-01-02 by default. 0001-01-01 turns this off."
        ),
        exclude_if=_is_missing,
    )
    may_drop_all: StrictBool | None = Field(
        default=None,
        description=(
            "Consent to dropping all partitions with a date, if all of a table's are too old. "
            "Without it, a table whose newest day is too old is left alone."
        ),
        exclude_if=_is_missing,
    )
    exempt_folders: (
        Annotated[list[_Folder], Field(min_length=1, max_length=MAX_EXEMPT_FOLDERS)] | None
    ) = Field(
        default=None,
        description="Folders of partitions to leave alone, relative to the table's location, such "
        "as `ds=2026-11-01`; none by default.",
        exclude_if=_is_missing,
    )
    readers_may_see_both: StrictBool | None = Field(
        default=None,
        description=(
            "Consent for tables on HDFS and S3, which are left alone without it: until the old "
            "files are removed, readers that list folders may find old and new files, and so "
            "every row twice."
        ),
    )
    pack: StrictBool | None = Field(
        default=None,
        description="Whether small files are copied into packs instead of being rewritten: the "
        "table's own files stay as they are. No by default.",
        exclude_if=_is_missing,
    )
    pack_max_bytes: ByteSize | None = Field(
        default=None,
        description="Maximum size of a table's packs; packs that save least reading for their bytes "
        "are withdrawn. Any size by default.",
        exclude_if=_is_missing,
    )
    pack_rights_are_stated: StrictBool | None = Field(
        default=None,
        description="Confirm that everyone who may read the folder of packs may read the whole "
        "table; without it, tables on object stores, where Windrow cannot check that, are not packed.",
        exclude_if=_is_missing,
    )


class Policy(Answer):
    """A policy of maintenance."""

    pattern: str = Field(
        description="A table's name, a name followed by `.*` for all below it, or `*`."
    )
    enabled: bool
    target_file_size: int | None
    min_files: int | None
    min_gain: float | None
    reads_per_day: float | None
    min_age_seconds: int | None
    windows: list[str] | None
    max_share: float | None
    filter: Filter | None
    keep_days: int | None
    keep_by: str | None
    keep_zone: str | None
    keep_before: date | None = Field(default=None, exclude_if=_is_missing)
    may_drop_all: bool | None = Field(default=None, exclude_if=_is_missing)
    exempt_folders: list[str] | None = Field(default=None, exclude_if=_is_missing)
    readers_may_see_both: bool | None
    pack: bool | None = Field(default=None, exclude_if=_is_missing)
    pack_max_bytes: int | None = Field(default=None, exclude_if=_is_missing)
    pack_rights_are_stated: bool | None = Field(default=None, exclude_if=_is_missing)
    created_at: datetime
    updated_at: datetime


class PolicyList(Answer):
    """Policies by pattern."""

    policies: list[Policy]


class EffectivePolicy(Answer):
    """How one table is maintained: each field from the most specific policy that sets it."""

    enabled: bool = False
    target_file_size: int = 128 * 2**20
    min_files: int = 2
    min_gain: float = 1.0
    reads_per_day: float = 0.0
    min_age_seconds: int = 900
    windows: list[str] = Field(default=[])
    max_share: float = 1.0
    filter: Filter | None = None
    keep_days: int | None = None
    keep_by: str | None = None
    keep_zone: str = "UTC"
    keep_before: date = Field(
        default=FIRST_REAL_DAY, exclude_if=lambda value: value == FIRST_REAL_DAY
    )
    may_drop_all: bool = Field(default=False, exclude_if=lambda value: not value)
    exempt_folders: list[str] = Field(default=[], exclude_if=lambda value: not value)
    readers_may_see_both: bool = False
    pack: bool = Field(default=False, exclude_if=lambda value: not value)
    pack_max_bytes: int | None = Field(default=None, exclude_if=_is_missing)
    pack_rights_are_stated: bool = Field(default=False, exclude_if=lambda value: not value)


class MaintenanceBudget(Request):
    """How much the maintenance of all tables together may use."""

    core_seconds_per_hour: Annotated[float, Field(ge=0, le=1e9, strict=True)] = Field(
        default=3_600.0,
        description="Seconds of one core; 3,600 keeps one core busy all the time, and 0 pauses all "
        "maintenance.",
    )
    bytes_per_hour: ByteSize | None = Field(
        default=None,
        description="Bytes of small files that are rewritten; any number by default.",
    )
    pause: StrictBool = Field(
        default=False,
        description="Whether all maintenance is paused: no worker gets work until this is false "
        "again. The budget stays as it is.",
        exclude_if=lambda value: not value,
    )
