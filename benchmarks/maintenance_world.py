"""Tables that are written and read for sixty days, for the simulation of maintenance.

There are five patterns of writing. Appends come each hour into the partition of the day; streams
write every five minutes, into partitions of days or into a table without partitions; late data
follows a daily load for weeks; backfills add to a range of old days at once; overwrites replace
partitions of some days, or the whole table, on a schedule. There are four of reading: the newest
days, a window of days, the whole table, and single days of which some are popular. How often a
table is read differs by orders of magnitude, by the hour and at weekends; a fifth of the tables
change how often they are read on some day, which nobody announces.

Reads and writes of all tables are drawn before anything is simulated, so they are the same under
every rule.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

KIB, MIB = 2**10, 2**20
TARGET = 128 * MIB
# Files are kept by size classes, below these bounds and above the last: half of the target and its
# quarters, and three quarters of the target, below which some rules call a file small.
BOUNDS = np.array([TARGET // 2 // 4**power for power in range(7, -1, -1)] + [TARGET * 3 // 4])
CLASSES = len(BOUNDS) + 1
# Files in these classes are below half of the target.
SMALL_CLASSES = 8
PATTERNS = ("appends", "streams", "late data", "backfills", "overwrites")
HISTORY_DAYS, DAYS = 30, 30
HISTORY, TICKS = HISTORY_DAYS * 24, DAYS * 24
ALL_TICKS = HISTORY + TICKS


@dataclass(frozen=True, slots=True, kw_only=True)
class Writes:
    """Files that writers add: one row for each hour, partition and size class.

    Attributes:
        begins: Where the rows of each hour begin, followed by their number.
        partition: The partition that is written.
        size_class: The size class of the files.
        files: Number of files.
        size_bytes: Bytes of all of them.
    """

    begins: Ints
    partition: Ints
    size_class: Ints
    files: Ints
    size_bytes: Floats

    def of_hour(self, hour: int) -> slice:
        """Return the rows of an hour."""
        return slice(int(self.begins[hour]), int(self.begins[hour + 1]))


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What happens to p partitions of m tables, whatever maintenance does.

    Attributes:
        pattern: For each table, its position in `PATTERNS`.
        table: Table of each partition.
        first_day: The day on which each partition can first be written.
        writes: The files that are added, hour by hour.
        replaced: For each hour, the partitions whose files are replaced by those of that hour.
        collides: For each hour, which of these replacements overlap a rewrite in the hour before.
        reads: Reads of each hour (row) and partition (column).
        read_totals: Reads of each partition (column) before each hour (row).
        write_totals: Hours in which it was written, likewise.
        replacement_totals: How often it was replaced, likewise.
        cost_factor: For each table, true costs of rewriting as a multiple of the model's.
        open_factor: For each table, the true cost of opening a file as a multiple of the model's.
    """

    pattern: Ints
    table: Ints
    first_day: Ints
    writes: Writes
    replaced: list[Ints]
    collides: list[Bools]
    reads: npt.NDArray[np.int32]
    read_totals: npt.NDArray[np.int32]
    write_totals: npt.NDArray[np.int32]
    replacement_totals: npt.NDArray[np.int32]
    cost_factor: Floats
    open_factor: Floats

    def reads_of_days(self, hour: int, days: int) -> Ints:
        """Return how often each partition was read in each 24 hours before an hour, newest first."""
        return _of_days(self.read_totals, hour, days)

    def writes_of_days(self, hour: int, days: int) -> Ints:
        """Return in how many hours each partition was written, as `reads_of_days` does."""
        return _of_days(self.write_totals, hour, days)

    def replacements_of_days(self, hour: int, days: int) -> Ints:
        """Return how often each partition was replaced, as `reads_of_days` does."""
        return _of_days(self.replacement_totals, hour, days)

    @property
    def tables(self) -> int:
        """Number of tables."""
        return len(self.pattern)

    @property
    def partitions(self) -> int:
        """Number of partitions."""
        return len(self.table)


@dataclass(slots=True)
class _Table:
    """The writes of one table, before those of all tables are put together."""

    rows: list[tuple[Ints, Ints, Ints, Floats]]
    replaced: list[tuple[Ints, Ints]]
    days: int

    def add(self, hour: Ints, day: Ints, files: Ints, file_bytes: Floats) -> None:
        """Add files to partitions; columns are broadcast."""
        columns = np.broadcast_arrays(hour, day, files, file_bytes)
        kept = (columns[0] < ALL_TICKS) & (columns[2] > 0)
        hours, days, counts, sizes = (column[kept] for column in columns)
        self.rows.append((hours, days, counts, sizes))


def make_world(tables: int, seed: int, *, is_balanced: bool = True) -> World:
    """Draw the writes and reads of some tables.

    Args:
        tables: Number of tables; each pattern has a fifth of them.
        seed: Seed of all draws.
        is_balanced: Whether reads of each pattern are multiplied so that all patterns cost readers
            the same if nothing is rewritten. As they are drawn, streams into tables without
            partitions, which every rule rewrites at once, cost more than all others together.
    """
    random = np.random.default_rng(seed)
    pattern = np.arange(tables) % len(PATTERNS)
    makers = (_appends, _streams, _late_data, _backfills, _overwrites)
    drawn = [makers[number](random) for number in pattern.tolist()]
    parts = [one.days for one in drawn]
    offsets = np.concatenate(([0], np.cumsum(parts)))
    hours, partitions, files, sizes = (
        np.concatenate(
            [
                rows[column] + (offsets[at] if column == 1 else 0)
                for at, one in enumerate(drawn)
                for rows in one.rows
            ]
        )
        for column in range(4)
    )
    replaced_hours, replaced = (
        np.concatenate(
            [np.zeros(0, np.int64)]
            + [
                pair[column] + (offsets[at] if column == 1 else 0)
                for at, one in enumerate(drawn)
                for pair in one.replaced
            ]
        )
        for column in range(2)
    )
    order = np.argsort(replaced_hours, kind="stable")
    cuts = np.searchsorted(replaced_hours[order], np.arange(1, ALL_TICKS))
    collides = random.random(len(replaced)) < 0.5
    writes = _together(hours, partitions, files, sizes)
    seeds = np.random.SeedSequence(seed).spawn(tables)

    def reads_of(times: Floats) -> npt.NDArray[np.int32]:
        draws = zip(seeds, parts, times.tolist(), strict=True)
        return np.concatenate(
            [_reads(np.random.default_rng(one), days, more) for one, days, more in draws], axis=1
        )

    table = np.repeat(np.arange(tables), parts)
    reads = reads_of(np.ones(tables))
    open_factor = random.lognormal(0, 0.5, tables)
    if is_balanced:
        opens = _opens(writes, reads, replaced, replaced_hours)
        of_table = np.bincount(table, opens, tables) * open_factor
        of_pattern = np.bincount(pattern, of_table, len(PATTERNS))
        reads = reads_of((of_pattern.mean() / of_pattern)[pattern])
    hour_of_row = np.repeat(np.arange(ALL_TICKS), np.diff(writes.begins))
    return World(
        pattern=pattern,
        table=table,
        first_day=np.concatenate([np.arange(days) if days > 1 else [0] for days in parts]),
        writes=writes,
        replaced=np.split(replaced[order], cuts),
        collides=np.split(collides[order], cuts),
        reads=reads,
        read_totals=_totals(reads),
        write_totals=_totals(_marks(hour_of_row, writes.partition, reads.shape)),
        replacement_totals=_totals(_marks(replaced_hours, replaced, reads.shape)),
        cost_factor=random.lognormal(0, 0.4, tables),
        open_factor=open_factor,
    )


def _marks(hour: Ints, partition: Ints, shape: tuple[int, ...]) -> npt.NDArray[np.int32]:
    marks = np.zeros(shape, np.int32)
    marks[hour, partition] = 1
    return marks


def _totals(events: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    totals = np.zeros((len(events) + 1, events.shape[1]), np.int32)
    np.cumsum(events, axis=0, out=totals[1:])
    return totals


def _of_days(totals: npt.NDArray[np.int32], hour: int, days: int) -> Ints:
    ends = totals[hour - 24 * np.arange(days + 1)].astype(np.int64)
    return np.ascontiguousarray((ends[:-1] - ends[1:]).T)


def _together(hours: Ints, partitions: Ints, files: Ints, sizes: Floats) -> Writes:
    classes = np.searchsorted(BOUNDS, sizes, "right")
    width = int(partitions.max()) + 1
    key = (hours * width + partitions) * CLASSES + classes
    distinct, number = np.unique(key, return_inverse=True)
    return Writes(
        begins=np.searchsorted(distinct // CLASSES // width, np.arange(ALL_TICKS + 1)),
        partition=distinct // CLASSES % width,
        size_class=distinct % CLASSES,
        files=np.bincount(number, files).astype(np.int64),
        size_bytes=np.bincount(number, files * sizes),
    )


def _sizes(random: np.random.Generator, median: float, count: int, spread: float = 0.5) -> Floats:
    return np.clip(median * random.lognormal(0, spread, count), 2 * KIB, 512 * MIB)


def _appends(random: np.random.Generator) -> _Table:
    table = _Table([], [], HISTORY_DAYS + DAYS)
    files = max(1, int(random.lognormal(1.5, 1.0)))
    median = float(np.clip(random.lognormal(np.log(256 * KIB), 1.5), 8 * KIB, 16 * MIB))
    hours = np.arange(ALL_TICKS)
    counts = random.poisson(files, ALL_TICKS)
    table.add(hours, hours // 24, counts, _sizes(random, median, ALL_TICKS))
    return table


def _streams(random: np.random.Generator) -> _Table:
    is_partitioned = random.random() < 0.6
    table = _Table([], [], HISTORY_DAYS + DAYS if is_partitioned else 1)
    tasks = int(random.integers(1, 9))
    median = float(np.clip(random.lognormal(np.log(32 * KIB), 1.0), 4 * KIB, MIB))
    hours = np.arange(ALL_TICKS)
    table.add(
        hours,
        hours // 24 if is_partitioned else np.zeros(ALL_TICKS, np.int64),
        np.full(ALL_TICKS, 12 * tasks),
        _sizes(random, median, ALL_TICKS),
    )
    return table


def _late_data(random: np.random.Generator) -> _Table:
    days = np.arange(HISTORY_DAYS + DAYS)
    table = _Table([], [], len(days))
    files, median = int(random.integers(10, 200)), float(random.lognormal(np.log(2 * MIB), 1.0))
    table.add(days * 24 + 2, days, np.full(len(days), files), _sizes(random, median, len(days)))
    hours = np.repeat(np.arange(ALL_TICKS), random.poisson(random.uniform(0.5, 4), ALL_TICKS))
    day = hours // 24 - np.minimum(random.geometric(0.25, len(hours)), 25)
    table.add(
        hours[day >= 0],
        day[day >= 0],
        random.integers(1, 6, int((day >= 0).sum())),
        _sizes(random, 24 * KIB, int((day >= 0).sum())),
    )
    return table


def _backfills(random: np.random.Generator) -> _Table:
    days = np.arange(HISTORY_DAYS + DAYS)
    table = _Table([], [], len(days))
    files, median = int(random.integers(4, 20)), float(random.lognormal(np.log(8 * MIB), 1.0))
    table.add(days * 24 + 3, days, np.full(len(days), files), _sizes(random, median, len(days)))
    for _ in range(int(random.integers(2, 6))):
        hour = int(random.integers(15 * 24, ALL_TICKS))
        newest = hour // 24 - int(random.integers(0, 5))
        old = np.arange(max(newest - int(random.integers(5, 30)), 0), newest + 1)
        each = int(random.integers(20, 200))
        median = float(np.clip(random.lognormal(np.log(128 * KIB), 1.0), 8 * KIB, 4 * MIB))
        table.add(
            np.full(len(old), hour), old, np.full(len(old), each), _sizes(random, median, len(old))
        )
    return table


def _overwrites(random: np.random.Generator) -> _Table:
    files = int(random.integers(10, 200))
    median = float(np.clip(random.lognormal(np.log(512 * KIB), 1.5), 8 * KIB, 16 * MIB))
    if random.random() < 0.5:
        table = _Table([], [], 1)
        every = int(random.choice([1, 6, 24, 24 * 7]))
        hours = np.arange(int(random.integers(0, every)), ALL_TICKS, every)
        day = np.zeros(len(hours), np.int64)
    else:
        # Each night, a job writes the last days anew.
        table = _Table([], [], HISTORY_DAYS + DAYS)
        last = int(random.integers(2, 5))
        night = np.repeat(np.arange(HISTORY_DAYS + DAYS), last)
        day = night - np.tile(np.arange(last), HISTORY_DAYS + DAYS)
        hours = night[day >= 0] * 24 + 4
        day = day[day >= 0]
    table.replaced.append((hours, day))
    table.add(hours, day, np.full(len(hours), files), _sizes(random, median, len(hours), 0.1))
    return table


def _opens(
    writes: Writes, reads: npt.NDArray[np.int32], replaced: Ints, replaced_hours: Ints
) -> Floats:
    """Return how many files readers of each partition open if nothing is rewritten."""
    added = np.zeros(reads.shape)
    hours = np.repeat(np.arange(ALL_TICKS), np.diff(writes.begins))
    np.add.at(added, (hours, writes.partition), writes.files)
    files = np.cumsum(added, axis=0)
    # What was there before a replacement is gone from then on.
    gone = np.zeros(reads.shape)
    gone[replaced_hours, replaced] = (files - added)[replaced_hours, replaced]
    files -= np.maximum.accumulate(gone, axis=0)
    opens: Floats = (files * reads)[HISTORY:].sum(0)
    return opens


def _reads(random: np.random.Generator, days: int, times: float) -> npt.NDArray[np.int32]:
    """Return the reads of each hour and partition of one table, which are multiplied by `times`."""
    each_day = times * min(float(random.lognormal(np.log(12), 1.8)), 20_000.0)
    hour = np.arange(ALL_TICKS)
    busy = np.where((hour % 24 >= 8) & (hour % 24 < 20), 1.6, 0.4)
    if random.random() < 0.5:
        busy = busy * np.where(hour // 24 % 7 >= 5, 0.3, 1.28)
    if random.random() < 0.2:
        change = int(random.integers(HISTORY, ALL_TICKS))
        busy = np.where(hour >= change, busy * random.choice([0.05, 0.3, 3.0, 10.0]), busy)
    rate = each_day / 24 * busy
    mode = random.choice(["newest", "window", "whole", "single"], p=[0.4, 0.3, 0.15, 0.15])
    if days == 1 or mode == "whole":
        started = np.arange(days) * 24 <= hour[:, None] if days > 1 else np.ones((ALL_TICKS, 1))
        return (random.poisson(rate)[:, None] * started).astype(np.int32)
    back = hour[:, None] // 24 - np.arange(days)
    if mode == "newest":
        falling = float(random.uniform(0.3, 0.8))
        share = np.where(back >= 0, falling ** np.maximum(back, 0), 0.0)
        return random.poisson(rate[:, None] * share).astype(np.int32)
    if mode == "window":
        width = int(random.choice([2, 7, 14, 30]))
        within = (back >= 0) & (back < width)
        return (random.poisson(rate)[:, None] * within).astype(np.int32)
    popularity = random.pareto(1.2, days) + 0.05
    share = np.where(back >= 0, popularity, 0.0)
    return random.poisson(rate[:, None] * share / share.sum(1, keepdims=True)).astype(np.int32)
