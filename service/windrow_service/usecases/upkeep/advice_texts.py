"""Texts about writes that went wrong, and about what would have avoided that."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from windrow_core.cards import count_text, seconds_text
from windrow_core.models import WriteTrouble
from windrow_core.sizes import size_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Writes with one kind of trouble, and the worst of them.

    Attributes:
        table: Name of the table.
        engine: The engine that writes and compacts the table; None if Windrow does.
        partition: Names of its partition columns.
        target_bytes: Target of a file, in bytes.
        writes: Number of these writes.
        files: Number of files of all these writes.
        size_bytes: Bytes of all these files.
        would_be: Number of files that would have held the same rows.
        partitions: Number of partitions that these writes wrote into.
        worst_files: Number of files of the worst write.
        worst_partitions: Number of partitions that the worst write wrote into.
        worst_bytes: Bytes of the worst write.
        worst_largest: Bytes of the largest file of the worst write.
        worst_tasks: Number of tasks of the worst write; None if not known.
        worst_ideal: Number of files that the worst write should have made.
    """

    table: str
    engine: str | None
    partition: Sequence[str]
    target_bytes: int
    writes: int
    files: int
    size_bytes: int
    would_be: int
    partitions: int
    worst_files: int
    worst_partitions: int
    worst_bytes: int
    worst_largest: int
    worst_tasks: int | None
    worst_ideal: int

    @property
    def writer(self) -> str:
        """The way of writing that makes good files, as text."""
        return "a write as `windrow write-plan` plans it" if self.engine else "`client.write`"

    @property
    def compactor(self) -> str:
        """The program that compacts the table, as text."""
        return self.engine or f"`windrow compact {self.table}`"

    @property
    def merged(self) -> str:
        """What compaction makes of the files that are there, as the end of a sentence."""
        return f"; {self.compactor} makes {_files(self.would_be)} of the existing {self.files:,}"

    @property
    def mean(self) -> str:
        """Mean size of a file of the worst write, as text."""
        return size_text(self.worst_bytes / self.worst_files)

    @property
    def among(self) -> str:
        """How many writes the worst one is among, as text; empty if it is the only one."""
        if self.writes == 1:
            return ""
        return f" (the worst of {self.writes:,} such writes, which made {self.files:,} files)"


def explained(trouble: WriteTrouble, case: Case) -> tuple[str, str]:
    """Return what went wrong with writes, and what would have avoided it."""
    return _TEXTS[trouble](case)


def of_fine_partitions(case: Case, *, partitions: int, small: int, levels: int) -> tuple[str, str]:
    """Return what is wrong with partitions that are too small, and what to do.

    Args:
        case: Figures of those partitions.
        partitions: Number of all partitions of the table.
        small: Number of partitions with less than half of the target.
        levels: How many of the partition columns are enough.
    """
    coarse, fine = case.partition[:levels], case.partition[levels:]
    alone = (
        f"; {case.compactor} leaves one file in each, {case.partitions:,} instead of {case.files:,}"
        if case.files > case.partitions
        else "; each has one file already, which compaction leaves as it is"
    )
    fewer = f"partition by {_names(coarse)} alone" if coarse else "do without partitions"
    return (
        f"{small:,} of {partitions:,} partitions hold less than half of {size_text(case.target_bytes)}, "
        f"{size_text(case.size_bytes / max(small, 1))} on average",
        f"{fewer}, and sort by {_names(fine)}, whose statistics then prune: "
        f"{_files(case.would_be)}{alone}",
    )


def of_several_folders(table: str, folders: Sequence[str], *, values: int) -> tuple[str, str]:
    """Return what is wrong with values that have several folders, and what to do.

    Args:
        table: Name of the table.
        folders: All of these folders, those of one value next to each other.
        values: Number of the values.
    """
    count = "1 partition has" if values == 1 else f"{values:,} partitions have"
    return (
        f"{count} several folders, {len(folders):,} in all, since their values are spelled in "
        f"different ways, such as {folders[0]!r} and {folders[1]!r}",
        f"`windrow compact {table}` joins them; write with `client.write`, which uses the folder that "
        "a value has, or let all programs spell values in the same way",
    )


def of_packs(
    table: str, *, files: int, partitions: int, saved_seconds: float, cost_seconds: float
) -> tuple[str, str]:
    """Return what small files outside of packs cost, and what to do.

    Args:
        table: Name of the table.
        files: Number of these files.
        partitions: Number of partitions that they are in.
        saved_seconds: What a read of all of them would save, on one core.
        cost_seconds: What packing them costs, on one core.
    """
    reads = count_text(math.ceil(cost_seconds / saved_seconds), "such read")
    return (
        f"{count_text(files, 'small file')} in {count_text(partitions, 'partition')} are in no pack, "
        f"which costs each read of all of them {seconds_text(saved_seconds)} of one core or more",
        f"`windrow pack {table}` copies their rows outside of the table, in about "
        f"{seconds_text(cost_seconds)} of one core, which {reads} save",
    )


def _explosion(case: Case) -> tuple[str, str]:
    columns = ", ".join(f'"{name}"' for name in case.partition)
    by_columns = (
        f"; or `df.repartition({case.worst_ideal}, {columns})` before "
        f"`partitionBy`, which brings each partition to one task"
        if case.worst_ideal == case.worst_partitions and columns
        else ""
    )
    return (
        f"{case.worst_tasks:,} tasks x {case.worst_partitions:,} partitions made "
        f"{case.worst_files:,} files of {case.mean}: each task wrote into every partition that "
        f"it had rows for{case.among}",
        f"{case.writer} would have made {_files(case.worst_ideal)}{by_columns}{case.merged}",
    )


def _many_tasks(case: Case) -> tuple[str, str]:
    by = "" if case.worst_tasks is None else f"{case.worst_tasks:,} tasks made "
    one_partition = case.worst_partitions == 1
    by_hand = (
        f"; or `df.coalesce({case.worst_ideal})`, or where a shuffle comes before, "
        f"`spark.sql.shuffle.partitions={case.worst_ideal}`"
        if one_partition
        else ""
    )
    return (
        f"{by}{case.worst_files:,} files of {case.mean} in {_partitions(case.worst_partitions)}, "
        f"{size_text(case.worst_bytes)} in all{case.among}",
        f"{case.writer} would have made {_files(case.worst_ideal)}{by_hand}{case.merged}",
    )


def _one_file_per_key(case: Case) -> tuple[str, str]:
    return (
        f"each of {case.worst_partitions:,} partitions has one file, whatever its size: the largest "
        f"has {size_text(case.worst_largest)}, and the target is {size_text(case.target_bytes)}{case.among}",
        f"{case.writer} divides large keys by a hash of stable columns, into "
        f"{_files(case.worst_ideal)} in all; `spark.sql.files.maxRecordsPerFile` would cut the "
        "files, but still one task would write all of a key",
    )


def _large_files(case: Case) -> tuple[str, str]:
    return (
        f"the largest of {case.worst_files:,} files has {size_text(case.worst_largest)}, and the target "
        f"is {size_text(case.target_bytes)}{case.among}",
        f"{case.writer} would have made {_files(case.worst_ideal)}; or "
        f"`df.repartition({case.worst_ideal})`, if all goes to one partition",
    )


def _small_appends(case: Case) -> tuple[str, str]:
    return (
        f"{case.writes:,} writes added {case.files:,} files of "
        f"{size_text(case.size_bytes / case.files)} to {_partitions(case.partitions)}, "
        f"{case.files / case.partitions:,.0f} into each",
        f"write less often, for example with a longer trigger of a stream; {case.compactor} "
        f"now and then makes {_files(case.would_be)} of them",
    )


_TEXTS: Mapping[WriteTrouble, Callable[[Case], tuple[str, str]]] = {
    "explosion": _explosion,
    "many_tasks": _many_tasks,
    "one_file_per_key": _one_file_per_key,
    "large_files": _large_files,
    "small_appends": _small_appends,
}


def _files(count: int) -> str:
    return "1 file" if count == 1 else f"{count:,} files"


def _partitions(count: int) -> str:
    return "1 partition" if count == 1 else f"{count:,} partitions"


def _names(names: Sequence[str]) -> str:
    return ", ".join(names)
